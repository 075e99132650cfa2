"""Responses that nobody waits for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import (
    ALLOW,
    Ask,
    Authenticator,
    Credentials,
    Grants,
    Guard,
    Host,
    Principal,
    ProviderFault,
    Question,
    SecuritySystem,
    TurnState,
    hookimpl,
)
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_openai_compat.responses import background, writes

from .asking import PATH, WEATHER, ask, calls_of, made, read, results, texts_of

MASTER = "a-key-0123456789abcdef"
KEYED = f'api_key = "{MASTER}"\n'
OPEN = ("queued", "in_progress")


async def ended(daemon: RunningDaemon, response: Any) -> Any:
    """Read a response until it has ended."""
    async with asyncio.timeout(20):
        while True:
            answer = await read(daemon, response)
            assert answer.status_code == 200, answer.text
            if answer.json()["status"] not in OPEN:
                return answer.json()


async def test_it_is_made_while_nobody_waits(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    queued = await made(daemon, background=True, metadata={"a": "b"})
    assert (queued["status"], queued["output"]) == ("queued", [])
    done = await ended(daemon, queued)
    assert (done["status"], done["background"]) == ("completed", True)
    assert texts_of(done) == ["You said: hello"]
    assert done["usage"]["total_tokens"] == 15
    unchanged = ("id", "created_at", "metadata", "model", "tools")
    assert [done[name] for name in unchanged] == [queued[name] for name in unchanged]
    await made(daemon, "again", previous_response_id=done["id"])
    assert daemon.model.requests[-1].messages[1].text == "You said: hello"


@pytest.mark.conformance
async def test_calls_of_the_clients_are_answered_in_the_background(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model.calls("weather", city="Rome")
    one = await ended(daemon, await made(daemon, background=True, tools=[WEATHER]))
    assert len(calls_of(one)) == 1
    daemon.model.says("sunny")
    body: Any = {"tools": [WEATHER], "previous_response_id": one["id"]}
    two = await made(daemon, results(one), background=True, **body)
    assert texts_of(await ended(daemon, two)) == ["sunny"]


async def test_what_it_fails_with_is_told(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.fails(ProviderFault.AUTH)
    failed = await ended(daemon, await made(daemon, background=True))
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "server_error"
    assert "scripted to fail" in failed["error"]["message"]


@pytest.mark.conformance
async def test_what_is_wrong_with_it_is_told_at_once(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    wrong = [{"type": "function_call_output", "call_id": "x", "output": "y"}]
    answer = await ask(daemon, wrong, background=True)
    assert (answer.status_code, answer.json()["param"]) == (400, "input.0.call_id")


async def test_a_cancelled_response_stays_cancelled(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    queued = await made(daemon, background=True)
    await pause.reached.wait()
    path = f"{PATH}/{queued['id']}"
    assert (await read(daemon, queued)).json()["status"] == "in_progress"
    first = await daemon.http.post(f"{path}/cancel")
    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    again = await daemon.http.post(f"{path}/cancel")
    assert again.json() == first.json()
    assert (await ended(daemon, queued)) == first.json()
    answer = await ask(daemon, previous_response_id=queued["id"])
    assert (answer.status_code, answer.json()["param"]) == (400, "previous_response_id")


@pytest.mark.conformance
async def test_one_that_has_ended_is_not_cancelled(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    done = await ended(daemon, await made(daemon, background=True))
    answer = await daemon.http.post(f"{PATH}/{done['id']}/cancel")
    assert answer.json() == done
    other = await made(daemon)
    answer = await daemon.http.post(f"{PATH}/{other['id']}/cancel")
    assert answer.status_code == 400


@pytest.mark.conformance
async def test_what_is_deleted_is_made_no_more(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    queued = await made(daemon, background=True)
    await pause.reached.wait()
    gone = await daemon.http.delete(f"{PATH}/{queued['id']}")
    assert gone.json()["deleted"] is True
    async with asyncio.timeout(30):
        while daemon.daemon.turns.running:
            await daemon.http.get("/api/health")
    assert (await read(daemon, queued)).status_code == 404


@pytest.mark.conformance
async def test_more_than_fit_wait_in_line(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pauses = [Pause() for _ in range(background.MOST)]
    for pause in pauses:
        daemon.model.says(pause, "one")
    many = [await made(daemon, background=True) for _ in range(background.MOST + 2)]
    for pause in pauses:
        await pause.reached.wait()
    states = [(await read(daemon, each)).json()["status"] for each in many]
    assert states == ["in_progress"] * background.MOST + ["queued"] * 2
    for pause in pauses:
        pause.go_on()
    done = [await ended(daemon, each) for each in many]
    assert {each["status"] for each in done} == {"completed"}
    assert len(daemon.model.requests) == len(many)


@pytest.mark.conformance
async def test_who_has_too_many_waiting_is_refused(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "MOST_WAITING", 1)
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says(pause, "one")
    first = await made(daemon, background=True)
    answer = await ask(daemon, background=True)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
    pause.go_on()
    await ended(daemon, first)


async def test_the_same_key_makes_one(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    headers = {"Idempotency-Key": "one"}
    body = {"model": "ada", "input": "hello", "background": True}
    asking = [daemon.http.post(PATH, json=body, headers=headers) for _ in range(3)]
    answers = [answer.json() for answer in await asyncio.gather(*asking)]
    assert len({answer["id"] for answer in answers}) == 1
    done = await ended(daemon, answers[0])
    assert (await daemon.http.post(PATH, json=body, headers=headers)).json() == done
    assert len(daemon.model.requests) == 1


@pytest.mark.conformance
async def test_it_is_taken_up_by_the_next_start(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    daemon = await daemons.start(home=home)
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says(pause, "never")
    queued = await made(daemon, "one", background=True)
    await pause.reached.wait()
    turn_id = next(iter(daemon.daemon.turns._live))  # type: ignore[attr-defined]  # reason: as a dying process
    work = daemon.daemon.turns._live[turn_id]  # type: ignore[attr-defined]  # reason: likewise
    work.cancel("the daemon ends", TurnState.INTERRUPTED)
    await daemon.http.aclose()
    await daemon.daemon.stop()
    again = await daemons.start(home=home)
    done = await ended(again, queued)
    assert texts_of(done) == ["You said: one"]
    assert len(again.model.requests) == 1


@pytest.mark.conformance
async def test_it_is_made_with_the_rights_of_then(daemons: Daemons) -> None:
    daemon = await daemons.start(config=KEYED)
    daemon.http.headers["authorization"] = f"Bearer {MASTER}"
    await daemon.agent("ada")
    asked = {"name": "ci", "scopes": ["chat"]}
    key = (await daemon.http.post("/api/keys", json=asked)).json()
    pauses = [Pause() for _ in range(background.MOST)]
    for pause in pauses:
        daemon.model.says(pause, "one")
    daemon.http.headers["authorization"] = f"Bearer {key['key']}"
    many = [await made(daemon, background=True) for _ in range(background.MOST + 1)]
    for pause in pauses:
        await pause.reached.wait()
    daemon.http.headers["authorization"] = f"Bearer {MASTER}"
    await daemon.http.delete(f"/api/keys/{key['id']}")
    for pause in pauses:
        pause.go_on()
    last = many[-1]["id"]
    async with asyncio.timeout(20):
        while True:
            row = await daemon.daemon.store.first(
                "SELECT status, ending FROM openai_responses WHERE id = :id",
                {"id": last},
            )
            if row is not None and row["status"] not in OPEN:
                break
    assert row["status"] == "failed"
    assert "may not any more" in row["ending"]
    assert len(daemon.model.requests) == background.MOST


class Guests(Authenticator):
    """Lets everybody in as a guest, who may nothing any more once they have asked."""

    name = "guests"

    async def authenticate(self, host: Host, shown: Credentials) -> Principal | None:
        """Give a guest."""
        grants = Grants({"route": ("agents:*",)})
        return Principal("guest", shown.token.reveal(), grants)

    async def recall(self, host: Host, kind: str, name: str) -> Principal | None:
        """Give the guest as they stand now."""
        return Principal(kind, name, Grants({"route": ("agents:read",)}))


@pytest.mark.conformance
async def test_who_may_speak_no_more_gets_no_answer(daemons: Daemons) -> None:
    offered = SimpleNamespace(
        __name__="guests", register_authenticator=hookimpl(lambda: [Guests()])
    )
    daemon = await daemons.start(config=KEYED, plugins=[offered])
    daemon.http.headers["authorization"] = f"Bearer {MASTER}"
    await daemon.agent("ada")
    daemon.http.headers["authorization"] = "Bearer somebody"
    done = await ended(daemon, await made(daemon, background=True))
    assert done["status"] == "failed"
    assert "agents:message" in done["error"]["message"]
    assert daemon.model.requests == []


def cautious() -> SimpleNamespace:
    """Have a person asked before anything is calculated."""

    def guard(case: Any) -> Any:
        return Ask(Question("May it?")) if case.tool == "calculate" else ALLOW

    @hookimpl
    def security_system() -> SecuritySystem:
        return SecuritySystem("caution", {Guard.TOOL_CALL: guard}, lambda: None)

    return SimpleNamespace(__name__="caution", security_system=security_system)


async def asked_about(daemon: RunningDaemon) -> str:
    """Wait until a person is asked; give the id of what they answer."""
    async with asyncio.timeout(20):
        while True:
            listed = (await daemon.http.get("/api/approvals")).json()
            if pending := listed["approvals"]:
                return str(pending[0]["id"])


async def approve(daemon: RunningDaemon, known: str) -> None:
    answer = await daemon.http.post(f"/api/approvals/{known}/approve", json={})
    assert answer.status_code == 200, answer.text


@pytest.mark.conformance
async def test_it_waits_for_a_person(daemons: Daemons) -> None:
    daemon = await daemons.start(plugins=[cautious()])
    await daemon.agent("ada")
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is 42.")
    queued = await made(daemon, background=True)
    known = await asked_about(daemon)
    assert (await read(daemon, queued)).json()["status"] == "in_progress"
    await approve(daemon, known)
    done = await ended(daemon, queued)
    assert texts_of(done) == ["It is 42."], done
