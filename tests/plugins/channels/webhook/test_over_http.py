"""The public path of a channel: what is signed is kept, and nothing else is read."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from agenthost import Unavailable
from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.bridge import pace
from agenthost_security import health_redaction

from .program import CALL, ENVIRON, JSON, KEY, PATH, Program, bearer, call, opened

ROWS = "SELECT sender, message_id FROM channel_inbox ORDER BY seq"
DEEP = b"[" * 200_000


@pytest.fixture
async def program() -> AsyncIterator[Program]:
    async with Program() as program:
        yield program


async def served(
    daemons: Daemons, config: str, home: Path | None = None
) -> RunningDaemon:
    running = await daemons.start(config=config, environ=ENVIRON, home=home)
    running.http.headers.pop("authorization", None)
    return running


async def with_agent(
    daemons: Daemons, program: Program, more: str = ""
) -> RunningDaemon:
    running = await served(daemons, program.config + more)
    await agent(running)
    await opened(running)
    return running


async def agent(running: RunningDaemon) -> None:
    made = await running.http.post(
        "/api/agents", headers=bearer(), json={"manifest_toml": 'name = "helper"\n'}
    )
    assert made.status_code == 201, made.text


async def kept(running: RunningDaemon) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await running.daemon.store.read(ROWS)]


async def test_a_signed_call_without_a_key_is_answered(
    daemons: Daemons, program: Program
) -> None:
    running = await with_agent(daemons, program)
    running.model.says("good *morning*")
    answer = await call(running.http)
    assert (answer.status_code, answer.content) == (202, b"")
    # It was on disk before it was answered.
    assert await kept(running) == [("ada", "msg_1")]
    assert await program.until(1) == ["good *morning*"]
    assert program.heard[0]["reply_to"] == "msg_1"


async def test_the_protections_know_of_the_open_path(
    daemons: Daemons, program: Program
) -> None:
    running = await served(daemons, program.config)
    await opened(running)
    answer = await running.http.get("/api/security", headers=bearer())
    assert answer.status_code == 200
    assert answer.json()["security_systems"]["health_redaction"] == "active"
    await asyncio.to_thread(health_redaction._prove_routes, running.daemon)


@pytest.mark.parametrize(
    ("body", "late", "headers", "status"),
    [
        (CALL, 0, {"webhook_signature": "v1,AAAA"}, 401),
        (CALL, 0, {"webhook_signature": ""}, 401),
        (CALL, 0, {"webhook_id": "msg_2"}, 401),
        (CALL, 400, {}, 401),
        (CALL, -400, {}, 401),
        # What is not signed is not read: it would be 400 otherwise.
        (DEEP, 0, {"webhook_signature": "v1,AAAA"}, 401),
        (DEEP, 0, {}, 400),
        (b"\xff\xfe", 0, {}, 400),
        (CALL, 0, {"content_type": "text/plain"}, 400),
        (CALL, 0, {"content_type": ""}, 400),
        (CALL, 0, {"content_encoding": "gzip"}, 415),
        (b" " * 10_000_000, 0, {}, 413),
    ],
    ids=[
        *("forged", "unsigned", "another id", "old", "of the future"),
        *("deep and forged", "deep", "no text", "plain", "untyped", "packed", "10 MB"),
    ],
)
async def test_what_is_not_right_changes_nothing(
    refusing: RunningDaemon,
    body: object,
    late: int,
    headers: dict[str, str],
    status: int,
) -> None:
    answer = await call(refusing.http, body, at=time.time() - late, **headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]
    assert await kept(refusing) == []
    assert refusing.model.requests == []


@pytest.fixture
async def refusing(daemons: Daemons, program: Program) -> RunningDaemon:
    return await with_agent(daemons, program)


async def test_what_comes_again_is_taken_once_also_after_a_start(
    daemons: Daemons, program: Program
) -> None:
    running = await with_agent(daemons, program)
    running.model.says("once")
    now = time.time()
    both = await asyncio.gather(*(call(running.http, at=now) for _ in range(5)))
    assert [each.status_code for each in both] == [202] * 5
    assert await program.until(1) == ["once"]
    await running.daemon.stop()
    again = await served(daemons, program.config, running.daemon.home)
    await opened(again)
    assert (await call(again.http, at=now)).status_code == 202
    assert await kept(again) == [("ada", "msg_1")]
    again.model.says("twice")
    assert (await call(again.http, name="msg_2")).status_code == 202
    assert await program.until(2) == ["once", "twice"]
    assert len(again.model.requests) == 1


async def test_a_stranger_who_signs_gets_no_turn(
    daemons: Daemons, program: Program
) -> None:
    running = await with_agent(daemons, program)
    answer = await call(running.http, {**CALL, "sender": "eve"})
    assert answer.status_code == 202
    running.model.says("for ada")
    assert (await call(running.http, name="msg_2")).status_code == 202
    assert await program.until(1) == ["for ada"]
    assert await kept(running) == [("ada", "msg_2")]
    assert len(running.model.requests) == 1


CLOSED = {
    "nothing configured": f'api_key = "{KEY}"\n',
    "switched off": f"""api_key = "{KEY}"
[channels.webhook]
agent = "helper"
url = "http://127.0.0.1:1/"
enabled = false
""",
    "not usable": f"""api_key = "{KEY}"
[channels.webhook]
agent = "helper"
""",
    "a channel that connects": f"""api_key = "{KEY}"
[channels.irc]
agent = "helper"
server = "127.0.0.1"
""",
}


async def same(http: httpx.AsyncClient, path: str, **headers: str) -> list[object]:
    """Tell what one sees of a path, apart from its name and the request's."""
    seen: list[object] = []
    for method in ("POST", "GET", "HEAD"):
        answer = await http.request(
            method, path, content=b"{}", headers={**JSON, **headers}
        )
        told = answer.text.replace(path, "PATH").replace(path[1:], "PATH")
        told = told.replace(answer.headers["x-request-id"], "ID")
        seen.append((answer.status_code, told, sorted(answer.headers)))
    return seen


@pytest.mark.parametrize("config", CLOSED.values(), ids=CLOSED)
async def test_a_channel_that_is_not_called_is_a_path_like_any_other(
    daemons: Daemons, config: str
) -> None:
    running = await served(daemons, config)
    http = running.http
    for channel in ("webhook", "irc", "nothing"):
        path = f"/channels/{channel}/in"
        seen = await same(http, path)
        assert seen == await same(http, "/nowhere/webhook/in")
        assert [each[0] for each in seen] == [401] * 3  # type: ignore[index]
        known = await same(http, path, **bearer())
        assert known == await same(http, "/nowhere/webhook/in", **bearer())
        assert [each[0] for each in known] == [404] * 3  # type: ignore[index]


async def test_other_methods_and_paths_are_not_public(refusing: RunningDaemon) -> None:
    for method, path in (
        *(("PUT", PATH), ("DELETE", PATH), ("POST", "/channels/webhook")),
        *(("POST", "/channels/irc/in"), ("POST", "/channels/webhook/")),
        *(("POST", "//channels/webhook/in"), ("POST", "/channels//in")),
    ):
        answer = await refusing.http.request(method, path)
        assert answer.status_code == 401, (method, path, answer.text)
    # The path is there, and this vendor sends no challenges.
    assert (await refusing.http.get(PATH)).status_code == 404


async def test_who_is_not_right_pays_and_who_signs_does_not(
    daemons: Daemons, program: Program
) -> None:
    limits = "\n[rate_limit]\nunits_per_minute = 20\nburst = 20\n"
    running = await served(daemons, program.config + limits)
    await opened(running)
    # An agent that is not there: what comes is kept, and nobody answers.
    signed = [await call(running.http, name=f"msg_{n}") for n in range(40)]
    assert {each.status_code for each in signed} == {202}
    # One is given back in three seconds: it takes a few more on a slow machine.
    forged = 401
    for _ in range(200):
        if forged == 401:
            answer = await call(running.http, webhook_signature="v1,A")
            forged = answer.status_code
    assert forged == 429
    assert len(await kept(running)) == 40


@pytest.mark.setting("channels.<name>.webhooks_per_minute")
async def test_a_channel_takes_so_many_a_minute(
    daemons: Daemons, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is given back meanwhile, however slow the machine is.
    monkeypatch.setattr(pace, "MINUTE", 1e9)
    running = await served(daemons, program.config + "webhooks_per_minute = 3\n")
    await opened(running)
    answers = [await call(running.http, name=f"msg_{n}") for n in range(4)]
    assert [each.status_code for each in answers] == [202, 202, 202, 429]
    assert "webhooks_per_minute" in answers[-1].text
    assert answers[-1].headers["retry-after"]
    # What was refused is not known: when it comes again it is taken.
    assert [row[1] for row in await kept(running)] == ["msg_0", "msg_1", "msg_2"]
    # And what is known already costs nothing.
    assert (await call(running.http, name="msg_0")).status_code == 202


async def test_what_cannot_be_kept_is_not_acknowledged(
    daemons: Daemons, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await served(daemons, program.config)
    await opened(running)
    store = running.daemon.store

    async def full(*given: object, **named: object) -> object:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(store, "write", full)
        assert (await call(running.http)).status_code == 503
    assert (await call(running.http)).status_code == 202
    assert await kept(running) == [("ada", "msg_1")]


async def test_what_was_acknowledged_is_answered_by_the_next_process(
    daemons: Daemons, program: Program
) -> None:
    running = await served(daemons, program.config)
    await opened(running)
    names = [f"msg_{number}" for number in range(20)]
    answers = await asyncio.gather(
        *(call(running.http, {**CALL, "conversation": name}, name) for name in names)
    )
    assert {each.status_code for each in answers} == {202}
    home = running.daemon.home
    await running.daemon.stop()
    # The agent comes while the channel is off: what was kept waits for it.
    off = await served(daemons, program.config + "enabled = false\n", home)
    await agent(off)
    await off.daemon.stop()
    await served(daemons, program.config, home)
    assert await program.until(20) == ["You said: hello"] * 20
    assert {each["conversation"] for each in program.heard} == {*names}


@pytest.mark.conformance
async def test_a_burst_of_a_thousand_from_one_address_loses_none(
    daemons: Daemons, program: Program
) -> None:
    running = await served(daemons, program.config)
    await opened(running)
    free = asyncio.Semaphore(20)

    async def one(number: int) -> int:
        async with free:
            answer = await call(
                running.http, {**CALL, "conversation": f"c{number % 7}"}, f"m{number}"
            )
            return answer.status_code

    answers = await asyncio.gather(*(one(number) for number in range(1000)))
    assert set(answers) == {202}
    names = {row[1] for row in await kept(running)}
    assert names == {f"m{number}" for number in range(1000)}
