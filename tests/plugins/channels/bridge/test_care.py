"""A channel is tried, connected anew, given secrets, and told what to say first."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agenthost import ToolOutput
from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.contract import Fate, Sent

from tests.plugins.http_api.test_terminal import Run, run

from .pager import CONFIG, LOST, Pager, said
from .test_bridge import quiet, rows, started

__all__ = ["run"]
ALLOWED = CONFIG + 'send_to = ["ada", "#team*"]\n'
REFUSED = Sent(Fate.NOT_SENT, reason="no such room", final=True)
AT = "/api/channels/pager"


async def posted(running: RunningDaemon, path: str, body: Any) -> tuple[int, Any]:
    answer = await running.http.post(f"{AT}/{path}", json=body)
    return answer.status_code, answer.json()


async def test_a_channel_is_tried_and_says_something(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    await pager.line()
    status, told = await posted(running, "test", {})
    assert status == 200
    assert (told["identity"], told["trouble"]) == ("", "the pager wants a token")
    given = await running.http.put(f"{AT}/secrets", json={"secrets": {"token": "abc"}})
    assert given.json() == {"kept": ["token"]}
    assert "abc" not in given.text
    _, told = await posted(running, "test", {"to": "#anywhere", "text": "*hello*"})
    assert told["identity"] == "pager with 3 signs"
    assert told["said"] == {"state": "delivered", "message_id": "v1", "reason": ""}
    [sent] = pager.sent
    assert (sent.place.peer, sent.text) == ("#anywhere", "hello")
    for fate, state in ((REFUSED, "failed"), (LOST, "unknown")):
        pager.fates = [fate]
        _, told = await posted(running, "test", {"to": "ada"})
        assert (told["said"]["state"], told["said"]["reason"]) == (state, fate.reason)


async def test_a_monitor_sees_how_channels_stand(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    await pager.line()
    pager.fates = [REFUSED]
    for to in ("ada", "eve"):
        await posted(running, "test", {"to": to})
    shown = (await running.http.get("/metrics")).text.splitlines()
    told = {line for line in shown if line.startswith("agenthost_channel")}
    assert {
        'agenthost_channel_connected{channel="pager"} 1.0',
        'agenthost_channel_unanswered{channel="pager"} 0.0',
        'agenthost_channel_messages_in_day{channel="pager",state="delivered"} 1.0',
        'agenthost_channel_messages_in_day{channel="pager",state="failed"} 1.0',
        'agenthost_channel_messages_in_day{channel="pager",state="unknown"} 0.0',
    } <= told


async def test_a_channel_is_connected_anew_when_told_and_by_new_secrets(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    await pager.line()
    status, _ = await posted(running, "reconnect", {})
    assert status == 200
    await pager.until(lambda: len(pager.lines) == 2)
    await running.http.put(f"{AT}/secrets", json={"secrets": {"token": None}})
    await pager.until(lambda: len(pager.lines) == 3)
    for body, words in (
        ({"secrets": {"tokn": "x"}}, "it has token"),
        ({"secrets": {"token": " "}}, "null forgets it"),
        ({"secrets": {}}, "secrets"),
    ):
        answer = await running.http.put(f"{AT}/secrets", json=body)
        assert answer.status_code == 400
        assert words in answer.text
    for path, status in (("nosuch/reconnect", 409), ("nosuch/test", 409)):
        answer = await running.http.post(f"/api/channels/{path}", json={})
        assert answer.status_code == status, answer.text
        assert "there are: pager" in answer.text


@pytest.mark.setting("channels.<name>.send_to")
async def test_an_agent_says_something_first_to_whom_it_may(daemons: Daemons) -> None:
    pager = Pager()
    running = await started(daemons, pager, ALLOWED)
    agent = await running.agent("caller", tools=["channel_send"])
    await pager.line()
    calls = [
        {"channel": "pager", "to": "#team-a", "text": "**done**"},
        {"channel": "pager", "to": "eve", "text": "psst"},
    ]
    running.model.calls_all(*[("channel_send", each) for each in calls])
    running.model.says("said")
    await agent.ask("Tell them.")
    told = [
        (part.text, part.is_error)
        for message in running.model.requests[-1].messages
        for part in message.parts
        if isinstance(part, ToolOutput)
    ]
    assert told[0] == ("delivered as v1", False)
    assert "eve is not in channels.pager.send_to" in told[1][0]
    assert [error for _, error in told] == [False, True]
    assert [each.place.peer for each in pager.sent] == ["#team-a"]


@pytest.mark.parametrize(
    ("target", "fates", "told", "sent"),
    [
        ("pager:ada", [], "done", 1),
        ("pager:eve", [], "send_to", 0),
        ("nowhere", [], "telegram:123456789", 0),
        ("pager:ada", [LOST], "unknown: the line broke", 1),
        ("pager:ada", [REFUSED], "no such room", 1),
    ],
)
async def test_a_schedule_delivers_to_a_channel(
    daemons: Daemons, target: str, fates: list[Sent], told: str, sent: int
) -> None:
    pager = Pager()
    pager.fates = fates
    running = await started(daemons, pager, ALLOWED)
    await pager.line()
    body = {
        "name": "s",
        "when": {"every_secs": 3600},
        "what": {"agent": "helper", "prompt": "Report."},
        "delivery": {"kind": "channel", "target": target},
    }
    made = await running.http.post("/api/schedules", json=body)
    assert made.status_code == 201, made.text
    path = f"/api/schedules/{made.json()['id']}"
    running.model.says("all is well")
    ran = await running.http.post(f"{path}/run", json={})
    assert ran.status_code < 300, ran.text
    async with asyncio.timeout(30):
        while True:
            found = (await running.http.get(f"{path}/occasions")).json()["occasions"]
            if found and told in (found[0]["delivered"] or ""):
                break
            await asyncio.sleep(0.02)
    await quiet(running)
    assert len(pager.sent) == sent
    kept = await rows(running, "SELECT count(*) FROM channel_outbox")
    assert kept == [(sent,)]


@pytest.fixture
def pager() -> Pager:
    return Pager()


@pytest.fixture
async def daemon(daemons: Daemons, pager: Pager) -> RunningDaemon:
    running = await started(daemons, pager, ALLOWED + 'dm_policy = "pairing"\n')
    await pager.line()
    return running


async def test_the_terminal_sees_to_channels(
    pager: Pager, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, row = (await run("channel", "list")).splitlines()
    assert head.split() == ["CHANNEL", "STANDS", "WHAT", "IS", "WRONG"]
    assert row.split() == ["pager", "connected", "-"]
    assert await run("channel", "pair", "pager") == "nobody asks to be let in\n"
    await run("channel", "test", "pager", code=1)
    monkeypatch.setattr("getpass.getpass", lambda _: "abcd")
    setup = await run("channel", "setup", "pager", "--secret", "token")
    assert setup.splitlines() == [
        "kept in the vault: token",
        "next: agenthost channel test pager",
    ]
    given = ("channel", "test", "pager", "--to", "ada", "--text", "-")
    said = await run(*given, said="hi")
    assert said == "we are pager with 4 signs\ndelivered: v1\n"
    assert pager.sent[-1].text == "hi"
    sent = await run("channel", "send", "pager", "ada", "-", said="*well*")
    assert sent == "delivered: v1\n"
    assert (pager.sent[-1].place.peer, pager.sent[-1].text) == ("ada", "well")
    assert await run("channel", "lost", "pager") == "nothing was lost\n"
    pager.fates = [REFUSED]
    in_thread = ("channel", "send", "pager", "ada", "hi", "--thread", "t", "--json")
    await run(*in_thread, code=1)
    assert pager.sent[-1].place.thread == "t"
    head, row = (await run("channel", "lost", "pager")).splitlines()
    assert head.split()[:3] == ["SAID", "AT", "TO"]
    assert row.split()[1:3] == ["ada", "failed"]
    assert "connected anew" in await run("channel", "reconnect", "pager")
    assert "pager is off;" in await run("channel", "disable", "pager")
    assert "pager is on;" in await run("channel", "enable", "pager")
    listed = json.loads(await run("channel", "list", "--json"))
    assert listed["total"] > 40
    wrong = await run("channel", "setup", "smoke", code=2)
    assert "no plugin offers the channel smoke" in wrong


async def test_the_terminal_lets_a_stranger_in(pager: Pager, run: Run) -> None:
    line = pager.lines[-1]
    await line.received(said("in?", sender="eve", peer="eve"))
    head, row = (await run("channel", "pair", "pager")).splitlines()
    assert head.split() == ["CODE", "SENDER", "CALLS", "ITSELF", "UNTIL"]
    code = row.split()[0]
    told = await run("channel", "pair", "pager", code)
    assert told == "eve may speak, as pager eve\n"
    await line.received(said("again?", 2, sender="joe", peer="joe"))
    (_, row) = (await run("channel", "pair", "pager")).splitlines()
    told = await run("channel", "pair", "pager", row.split()[0], "--reject")
    assert told == f"rejected {row.split()[0]}\n"
