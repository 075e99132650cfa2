"""Providers over the API: their keys, and trying one out."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from agenthost import (
    ConfigError,
    ModelFacts,
    Probe,
    ProviderFacts,
    ProviderSpec,
    as_json,
    hookimpl,
)
from agenthost.testing import Recorded
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.simulators import (
    OpenAIChatWire,
    ProviderSimulator,
    Reply,
    Turn,
)
from agenthost_dialects import register_dialect
from agenthost_http_api.events import ProviderKeysChanged
from agenthost_storage.vault import FileVault, replace_file

GOOD = "sk-canary-5f2b91c07d"
BAD = "sk-wrong-77aa01e3f2"


class Guarded(ProviderSimulator):
    """A service that knows one key, and repeats a wrong one in its refusal."""

    def __init__(self) -> None:
        super().__init__(OpenAIChatWire())
        self.probes = 0
        self.refused: list[str] = []

    def reply(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Refuse whoever has not the key; GET is the probe."""
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if given != GOOD:
            self.refused.append(headers[":method"])
            return self.refuse(401, f"Incorrect API key provided: {given}")
        if headers[":method"] == "GET":
            self.probes += 1
            return Reply((b"{}",))
        return super().reply(path, headers, body)


@pytest.fixture
async def upstream() -> AsyncIterator[Guarded]:
    async with Guarded() as simulator:
        yield simulator


def configured(upstream: ProviderSimulator) -> str:
    return (
        f'[providers.house]\nbase_url = "{upstream.base_url}"\n'
        'api_key_env = "HOUSE_KEY"\nmodels = ["tiny"]\n'
    )


async def house(daemon: RunningDaemon) -> dict[str, Any]:
    body = (await daemon.http.get("/api/providers")).json()
    assert body["total"] == len(body["providers"])
    (row,) = [row for row in body["providers"] if row["name"] == "house"]
    return dict(row)


async def set_key(daemon: RunningDaemon, **body: Any) -> httpx.Response:
    return await daemon.http.post("/api/providers/house/key", json=body)


async def trial(daemon: RunningDaemon, name: str = "house") -> httpx.Response:
    return await daemon.http.post(f"/api/providers/{name}/test")


async def test_all_twenty_and_the_offline_one_are_listed(daemons: Daemons) -> None:
    daemon = await daemons.start(environ={"GROQ_API_KEY": GOOD})
    answer = await daemon.http.get("/api/providers")
    rows = {row["name"]: row for row in answer.json()["providers"]}
    assert len(rows) >= 22
    groq = rows["groq"]
    assert groq["model_count"] >= 4
    assert groq == {
        "name": "groq",
        "display_name": "Groq",
        "auth_status": "configured",
        "env_var": "GROQ_API_KEY",
        "base_url": "https://api.groq.com/openai/v1",
        "model_count": groq["model_count"],
    }
    assert rows["openai"]["auth_status"] == "missing"
    assert rows["offline"]["auth_status"] == "no_key_needed"
    assert "env_var" not in rows["offline"]
    assert GOOD not in answer.text


async def test_an_address_is_shown_without_its_password(daemons: Daemons) -> None:
    url = f"https://me:{GOOD}@proxy.example:8443/v1?key={GOOD}"
    daemon = await daemons.start(config=f'[providers.house]\nbase_url = "{url}"\n')
    assert (await house(daemon))["base_url"] == "https://proxy.example:8443/v1"


async def test_a_key_holds_at_once_and_its_removal_too(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(config=configured(upstream))
    model = '[model]\nprovider = "house"\nmodel = "tiny"\n'
    agent = await daemon.agent(tools=[], extra=model)
    assert (await house(daemon))["auth_status"] == "missing"
    assert (await agent.send("hi")).status_code == 500
    answer = await set_key(daemon, api_key=f"  {GOOD}\n")
    assert answer.json() == {"status": "configured", "provider": "house"}
    assert (await house(daemon))["auth_status"] == "configured"
    upstream.play(Turn("at your service"))
    assert await agent.ask("hi") == "at your service"
    for _ in range(2):
        gone = await daemon.http.delete("/api/providers/house/key")
        assert gone.json() == {"status": "removed", "provider": "house"}
    assert (await house(daemon))["auth_status"] == "missing"
    heard = len(upstream.heard)
    refused = await agent.send("hi")
    assert refused.status_code == 500
    assert "HOUSE_KEY" in refused.json()["error"]
    assert len(upstream.heard) == heard


async def test_a_key_outlives_a_restart_and_is_nowhere_in_plain(
    daemons: Daemons, upstream: Guarded
) -> None:
    first = await daemons.start(config=configured(upstream))
    await set_key(first, key=GOOD)
    home = first.daemon.home
    await first.http.post("/api/shutdown")
    await first.daemon.stop()
    for path in home.rglob("*"):
        assert not path.is_file() or GOOD.encode() not in path.read_bytes()
    second = await daemons.start(home=home)
    assert (await house(second))["auth_status"] == "configured"


async def test_a_variable_that_still_holds_a_key_is_told(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(
        config=configured(upstream), environ={"HOUSE_KEY": GOOD}
    )
    answer = (await daemon.http.delete("/api/providers/house/key")).json()
    assert answer["status"] == "removed"
    assert "HOUSE_KEY" in answer["message"]


async def test_several_keys_are_kept_in_order_and_replaced_as_a_whole(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(config=configured(upstream))
    vault = daemon.daemon.vault
    await vault.change({"provider/housekeeping": "another provider's"})
    await set_key(daemon, api_keys=["one", " two ", "one", "three"])
    names = ["provider/house", "provider/house#2", "provider/house#3"]
    kept = [vault.get(name) for name in names]
    assert [key and key.reveal() for key in kept] == ["one", "two", "three"]
    await set_key(daemon, api_key="four")
    assert vault.names() == ["provider/house", "provider/housekeeping"]
    await set_key(daemon, api_keys=["five", "six"])
    await daemon.http.delete("/api/providers/house/key")
    assert vault.names() == ["provider/housekeeping"]


async def test_keys_are_replaced_in_one_write_or_not_at_all(
    daemons: Daemons, upstream: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = await daemons.start(config=configured(upstream))
    writes: list[bytes] = []

    def write(place: Path, data: bytes) -> None:
        writes.append(data)
        if len(writes) == 3:
            raise ConfigError("the vault is gone")
        replace_file(place, data)

    monkeypatch.setattr("agenthost_storage.vault.replace_file", write)
    vault = daemon.daemon.vault = FileVault(tmp_path / "vault", lambda: bytes(32))
    await set_key(daemon, api_keys=["one", "two", "three"])
    await set_key(daemon, api_keys=["four", "five"])
    assert len(writes) == 2
    refused = await set_key(daemon, api_keys=["six", "seven", "eight"])
    assert refused.status_code == 500
    kept = [vault.get(name) for name in vault.names()]
    assert [key.reveal() for key in kept if key] == ["four", "five"]


async def test_keys_set_at_once_never_mix(
    daemons: Daemons, upstream: Guarded, tmp_path: Path
) -> None:
    daemon = await daemons.start(config=configured(upstream))
    disk = threading.Event()

    def key() -> bytes:
        assert disk.wait(10)
        return bytes(32)

    vault = daemon.daemon.vault = FileVault(tmp_path / "vault", key)
    many = asyncio.create_task(set_key(daemon, api_keys=["one", "two", "three"]))
    few = asyncio.create_task(set_key(daemon, api_keys=["four"]))
    assert (await daemon.http.get("/api/health")).status_code == 200
    disk.set()
    await asyncio.gather(many, few)
    kept = [vault.get(name) for name in vault.names()]
    assert [key.reveal() for key in kept if key] in (["one", "two", "three"], ["four"])


async def test_a_full_disk_is_507_and_no_panic_when_a_key_is_set(
    daemons: Daemons, upstream: Guarded, tmp_path: Path
) -> None:
    daemon = await daemons.start(config=configured(upstream))

    def key() -> bytes:
        raise OSError(errno.ENOSPC, "no room")

    daemon.daemon.vault = FileVault(tmp_path / "vault", key)
    refused = await set_key(daemon, api_key=GOOD)
    assert (refused.status_code, refused.json()["code"]) == (507, "storage_full")
    assert (await daemon.http.get("/api/health")).json()["panic_count"] == 0


async def test_a_provider_that_needs_no_key_names_no_variable(
    daemon: RunningDaemon,
) -> None:
    listed = (await daemon.http.get("/api/providers")).json()["providers"]
    free = [row for row in listed if row["auth_status"] == "no_key_needed"]
    assert {"lmstudio", "ollama", "vllm"} <= {row["name"] for row in free}
    assert not any("env_var" in row for row in free)


NO_KEYS: tuple[Any, ...] = (
    {},
    {"api_key": ""},
    {"api_key": " \n"},
    {"api_key": None},
    {"api_key": 7},
    {"api_key": f"{GOOD}\r\nX-Evil: 1"},
    {"api_key": f"{GOOD}\u00e9"},
    {"api_key": GOOD * 1_000},
    {"api_keys": []},
    {"api_keys": [GOOD, ""]},
    {"api_key": GOOD, "api_keys": [GOOD]},
    {"api_keys": [GOOD] * 17},
    [GOOD],
)


async def test_what_is_no_key_is_refused_without_repeating_it(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(config=configured(upstream))
    for body in NO_KEYS:
        answer = await daemon.http.post("/api/providers/house/key", json=body)
        assert answer.status_code == 400, (body, answer.text)
        assert GOOD not in answer.text
    assert daemon.daemon.vault.names() == []


async def test_an_unknown_provider_is_named_with_the_nearest(
    daemon: RunningDaemon,
) -> None:
    key = "/api/providers/grok/key"
    for answer in (
        await daemon.http.post(key, json={"api_key": GOOD}),
        await daemon.http.delete(key),
        await trial(daemon, "grok"),
    ):
        assert answer.status_code == 404
        assert "did you mean 'groq'?" in answer.json()["error"]


async def test_a_good_key_passes_the_test(daemons: Daemons, upstream: Guarded) -> None:
    daemon = await daemons.start(config=configured(upstream))
    await set_key(daemon, api_key=GOOD)
    upstream.play(Turn("Hi"))
    answer = await trial(daemon)
    assert answer.status_code == 200
    body = answer.json()
    assert body.pop("latency_ms") in range(5_000)
    assert body == {
        "status": "ok",
        "provider": "house",
        "model_tested": "tiny",
        "checked": "model",
    }
    assert upstream.heard[0].body["max_tokens"] == 16


async def test_a_bad_key_fails_the_test_and_is_not_repeated(
    daemons: Daemons, upstream: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    daemon = await daemons.start(config=configured(upstream))
    await set_key(daemon, api_key=BAD)
    answer = await trial(daemon)
    assert answer.status_code == 401
    body = answer.json()
    assert (body["status"], body["provider"]) == ("failed", "house")
    assert "Incorrect API key provided: ***" in body["error"]
    assert set(body) == {"status", "provider", "error"}
    for text in (answer.text, caplog.text):
        assert BAD not in text


async def test_no_key_of_several_is_repeated(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(
        config=configured(upstream),
        environ={"HOUSE_KEY": GOOD, "HOUSE_KEY_2": BAD},
    )
    said = f'{{"error": "{GOOD} is not {BAD}"}}'.encode()
    upstream.play(Reply((said,), 400))
    error = (await trial(daemon)).json()["error"]
    assert error == "house: *** is not ***"


async def test_no_fallback_passes_the_test_for_a_bad_key(
    daemons: Daemons, upstream: Guarded
) -> None:
    spare = '[[fallback_providers]]\nprovider = "offline"\n'
    daemon = await daemons.start(config=spare + configured(upstream))
    await set_key(daemon, api_key=BAD)
    assert (await trial(daemon)).status_code == 401


async def test_without_a_key_the_test_names_the_variable(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(config=configured(upstream))
    answer = await trial(daemon)
    assert answer.status_code == 400
    assert "HOUSE_KEY" in answer.json()["error"]
    assert upstream.connections == 0


async def test_whatever_else_goes_wrong_is_a_failed_test(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(config=configured(upstream))
    await set_key(daemon, api_key=GOOD)
    scenes = (
        Reply((f'{{"error": "no room for {GOOD}"}}'.encode(),), 400),
        Reply((b"no JSON",)),
        Reply((b"{}",), 402),
        Reply(drop=True),
    )
    for scene in scenes:
        upstream.play(scene)
        answer = await trial(daemon)
        assert answer.status_code == 502
        body = answer.json()
        assert (body["status"], body["provider"]) == ("failed", "house")
        assert GOOD not in answer.text


async def test_a_service_that_is_not_there_is_a_failed_test(daemons: Daemons) -> None:
    closed = 'base_url = "http://127.0.0.1:9/v1"\nmodels = ["tiny"]\n'
    daemon = await daemons.start(config=f"[providers.house]\n{closed}")
    answer = await trial(daemon)
    assert answer.status_code == 502
    assert "cannot be reached (Connection refused)" in answer.json()["error"]


async def test_a_provider_without_models_says_where_to_list_one(
    daemons: Daemons,
) -> None:
    bare = '[providers.house]\nbase_url = "http://127.0.0.1:9/v1"\n'
    answer = await trial(await daemons.start(config=bare))
    assert answer.status_code == 400
    assert "[providers.house] models" in answer.json()["error"]


def probed(upstream: Guarded) -> SimpleNamespace:
    """A plugin of a local provider whose probe proves the key."""
    offered = {dialect.name: dialect for dialect in register_dialect()}
    facts = ProviderFacts(
        "probed",
        "Probed",
        upstream.base_url,
        env_var="PROBED_KEY",
        local=True,
        models=(ModelFacts("probed-1", "probed", "p1", "P1"),),
        probe=Probe("GET", "/models", {"Authorization": "Bearer {key}"}, keys="[^:]+"),
    )

    @hookimpl
    def register_provider() -> Iterable[ProviderSpec]:
        return [ProviderSpec(facts, offered["openai-chat"].make({}))]

    return SimpleNamespace(__name__="probed", register_provider=register_provider)


async def test_a_probe_that_proves_the_key_spends_nothing(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(
        plugins=[probed(upstream)], environ={"PROBED_KEY": GOOD}
    )
    body = (await trial(daemon, "probed")).json()
    assert (body["status"], body["checked"]) == ("ok", "key")
    assert (upstream.probes, upstream.heard) == (1, [])


async def test_a_probe_is_not_sent_a_key_it_is_not_for(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(
        plugins=[probed(upstream)], environ={"PROBED_KEY": f"{GOOD}:secret"}
    )
    assert (await trial(daemon, "probed")).status_code == 401
    assert (upstream.probes, upstream.refused) == (0, ["POST"])


async def test_a_probe_that_refuses_leaves_the_verdict_to_a_chat(
    daemons: Daemons, upstream: Guarded
) -> None:
    daemon = await daemons.start(
        plugins=[probed(upstream)], environ={"PROBED_KEY": BAD}
    )
    answer = await trial(daemon, "probed")
    assert answer.status_code == 401
    assert BAD not in answer.text


async def test_who_changes_the_keys_of_a_provider_is_recorded_before(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    book = Recorded(daemon.daemon.events, ProviderKeysChanged)
    path = "/api/providers/openai/key"
    await daemon.http.post(path, json={"api_key": "sk-first-0123456789"})
    book.refuses = (ProviderKeysChanged,)
    refused = await daemon.http.post(path, json={"api_key": "sk-other-0123456789"})
    assert refused.status_code == 503
    assert (await daemon.http.delete(path)).status_code == 503
    kept = daemon.daemon.vault.get("provider/openai")
    assert kept is not None
    assert kept.reveal() == "sk-first-0123456789"
    book.refuses = ()
    await daemon.http.delete(path)
    assert book.kept == book.told
    assert [(each.subject, as_json(each)["data"]) for each in book.kept] == [
        ("openai", {"keys": 1}),
        ("openai", {"keys": 0}),
    ]
