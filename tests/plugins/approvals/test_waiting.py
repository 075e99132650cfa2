"""A turn whose call needs a person waits on disk, and goes on in its own place."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from agenthost import (
    Deny,
    Event,
    Failed,
    Turn,
    TurnEnded,
    TurnState,
    Waiting,
)
from agenthost.testing import Daemons, ManualClock, Pause, Recorded
from agenthost.testing.daemons import RunningDaemon
from agenthost_approvals.events import ApprovalEvent
from agenthost_records.tables import messages
from agenthost_toolbox.toolbox import GuardedToolbox
from sqlalchemy import select

from .stage import TOOLS, Shop, answer, ask, ends, listed, results, wait_until, waits

MESSAGES = select(messages.c.id)


async def test_a_turn_waits_and_goes_on_when_a_person_says_yes(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay", amount=5)
    told = await waits(agent, "pay 5")
    assert (told["status"], shop.runs) == ("waiting", [])
    assert daemon.daemon.turns.running == 0
    (question, call) = (await agent.session())["messages"]
    assert question["status"] == "waiting"
    assert "approval" in call["tools"][0]["result"]
    done = await answer(daemon, told["approval_id"])
    assert (done.status_code, done.json()["state"]) == (200, "approved")
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert shop.runs == [("pay", 5)]
    assert results(daemon) == ["pay done"]
    said = (await agent.session())["messages"]
    assert [m["content"] for m in said] == ["pay 5", "", "You said: "]
    assert said[1]["tools"][0]["result"] == "pay done"
    assert {m["status"] for m in said} == {"complete"}
    (session,) = (await daemon.http.get("/api/sessions")).json()["sessions"]
    assert session["message_count"] == 3


async def test_a_no_is_told_to_the_model_with_its_reason(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    await answer(daemon, told["approval_id"], "deny", reason="too dear")
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert shop.runs == []
    assert results(daemon) == ["pay failed: a person said no: too dear"]


@pytest.mark.parametrize(
    "config",
    [
        '[plugins]\ndisable = ["plugin:approvals"]\n',
        '[backends]\napprovals = "none"\n',
    ],
)
async def test_without_an_approver_an_ask_is_a_deny(
    daemons: Daemons, shop: Shop, config: str
) -> None:
    daemon = await daemons.start(config=config, plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    assert (await agent.send("pay")).status_code == 200
    assert shop.runs == []
    assert "enable the plugin approvals" in results(daemon)[0]
    assert (await daemon.http.get("/api/approvals")).status_code == 404


async def test_of_an_ask_and_a_deny_the_deny_wins(daemons: Daemons, shop: Shop) -> None:
    shop.second["pay"] = Deny("never on a Sunday")
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    assert (await agent.send("pay")).status_code == 200
    assert results(daemon) == ["pay failed: never on a Sunday"]
    assert await listed(daemon) == []


async def test_each_guard_that_asks_must_be_answered(
    daemons: Daemons, shop: Shop
) -> None:
    shop.second["pay"] = ask("Does the other guard agree?")
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    await answer(daemon, told["approval_id"])

    async def asks_again() -> bool:
        return bool(await listed(daemon, state="pending"))

    await wait_until(asks_again, "the other guard asks")
    left = await listed(daemon, state="pending")
    assert shop.runs == []
    both = {each["question"] for each in await listed(daemon)}
    assert both == {"Shall it be paid?", "Does the other guard agree?"}
    await answer(daemon, left[0]["id"])
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_calls_before_the_question_are_kept_and_those_behind_it_wait(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls_all(("ship", {"amount": 1}), ("pay", {}), ("ship", {}))
    told = await waits(agent, "go")
    assert shop.runs == [("ship", 1)]
    await answer(daemon, told["approval_id"])
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert shop.runs == [("ship", 1), ("pay", 0), ("ship", 0)]
    assert results(daemon) == ["ship done", "pay done", "ship done"]
    calls = await daemon.daemon.journal.calls(told["turn_id"])
    assert {state.value for state, _ in calls.values()} == {"committed"}


async def test_reads_that_run_together_ask_together(
    daemons: Daemons, shop: Shop
) -> None:
    shop.asks = {"look": ask("May it look?")}
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls_all(("look", {"amount": 1}), ("look", {"amount": 2}))
    told = await waits(agent, "look twice")
    first, second = await listed(daemon, turn_id=told["turn_id"])
    await answer(daemon, first["id"])
    record = await daemon.daemon.journal.find(told["turn_id"])
    assert record is not None
    assert record.state is TurnState.WAITING
    assert shop.runs == []
    await answer(daemon, second["id"], "deny")
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_other_turns_run_meanwhile_and_see_the_open_call(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "first")
    assert await agent.ask("second") == "You said: second"
    assert "Waiting for a person" in results(daemon)[0]
    assert await agent.ask("third") == "You said: third"
    await answer(daemon, told["approval_id"])
    await ends(daemon, told["turn_id"], TurnState.DONE)
    # It answers what it was asked, and stands where it was asked.
    asked = [m.text for m in daemon.model.requests[-1].messages if m.role == "user"]
    assert asked == ["first"]
    await agent.ask("fourth")
    asked = [m.text for m in daemon.model.requests[-1].messages if m.role == "user"]
    assert asked == ["first", "second", "third", "fourth"]
    assert results(daemon) == ["pay done"]
    said = [m["content"] for m in (await agent.session())["messages"] if m["content"]]
    assert said == [
        "first",
        "You said: ",
        "second",
        "You said: second",
        "third",
        "You said: third",
        "fourth",
        "You said: fourth",
    ]


async def test_a_repeated_request_gets_the_same_waiting_answer(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay", idempotency_key="k")
    kept = len(await daemon.daemon.store.read(MESSAGES))
    for _ in range(3):
        assert await waits(agent, "pay", idempotency_key="k") == told
    assert len(daemon.model.requests) == 1
    assert len(await daemon.daemon.store.read(MESSAGES)) == kept
    await answer(daemon, told["approval_id"])
    again = await agent.send("pay", idempotency_key="k")
    while again.status_code == 202:
        again = await agent.send("pay", idempotency_key="k")
    assert again.json()["response"] == "You said: "
    assert len(shop.runs) == 1


async def test_the_stream_and_a_late_viewer_are_told(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    events = await agent.events("pay")
    assert [name for name, _ in events] == [
        "tool_use",
        "tool_result",
        "waiting",
        "done",
    ]
    assert events[-1][1]["finish"] == "tool_calls"
    told = events[2][1]
    known = daemon.daemon.agents.get(agent.id)
    watcher = await daemon.daemon.turns.attach(known, told["turn_id"])
    (*_, last) = [event async for event in watcher.events()]
    assert isinstance(last, Failed)
    assert isinstance(last.error, Waiting)
    assert last.error.facts["approval_id"] == told["approval_id"]


async def test_a_question_that_nobody_answers_in_time_is_a_no(
    daemons: Daemons, shop: Shop
) -> None:
    shop.asks["pay"] = ask(seconds=60)
    clock = ManualClock()
    daemon = await daemons.start(plugins=shop.plugins, clock=clock)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    await clock.advance(61)
    late = await answer(daemon, told["approval_id"])
    assert late.status_code == 409
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert shop.runs == []
    assert results(daemon) == ["pay failed: no person answered in time, which is a no"]


async def test_a_yes_after_a_restart_lets_the_turn_go_on(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home, plugins=shop.plugins)
    agent = await first.agent(tools=TOOLS)
    first.model.calls("pay", amount=7)
    told = await waits(agent, "pay")
    await first.daemon.stop()
    second = await daemons.start(home=home, plugins=shop.plugins)
    assert second.daemon.interrupted_turns == 0
    assert (await listed(second))[0]["state"] == "pending"
    await answer(second, told["approval_id"])
    await ends(second, told["turn_id"], TurnState.DONE)
    assert shop.runs == [("pay", 7)]


async def test_a_deadline_that_passed_while_it_was_down_is_a_no(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    home, clock = tmp_path / "home", ManualClock()
    first = await daemons.start(home=home, plugins=shop.plugins, clock=clock)
    agent = await first.agent(tools=TOOLS)
    first.model.calls("pay")
    told = await waits(agent, "pay")
    await first.daemon.stop()
    await clock.advance(4000)
    second = await daemons.start(home=home, plugins=shop.plugins, clock=clock)
    await ends(second, told["turn_id"], TurnState.DONE)
    assert shop.runs == []
    (row,) = await listed(second)
    assert row["state"] == "expired"


async def test_an_answer_that_was_not_acted_on_is_acted_on_at_the_start(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home, plugins=shop.plugins)
    agent = await first.agent(tools=TOOLS)
    first.model.calls("pay")
    told = await waits(agent, "pay")
    # What a crash between the answer and the turn leaves.
    await first.daemon.approvals.keeper.stop()  # type: ignore[attr-defined]
    await answer(first, told["approval_id"])
    await first.daemon.stop()
    second = await daemons.start(home=home, plugins=shop.plugins)
    await ends(second, told["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_a_turn_that_goes_on_at_the_start_finds_the_tools_of_all_plugins(
    daemons: Daemons, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, began = tmp_path / "home", asyncio.Queue[Turn]()
    bring = GuardedToolbox.start

    async def start(toolbox: GuardedToolbox) -> None:
        # The answered turn would like to go on before the tools are brought.
        toolbox._host.turns.listen(began.put_nowait)
        with suppress(TimeoutError):
            turn = await asyncio.wait_for(began.get(), 0.2)
            await turn.result()
        await bring(toolbox)

    first = await daemons.start(home=home, plugins=shop.plugins)
    agent = await first.agent(tools=TOOLS)
    first.model.calls("pay")
    told = await waits(agent, "pay")
    await first.daemon.approvals.keeper.stop()  # type: ignore[attr-defined]
    await answer(first, told["approval_id"])
    await first.daemon.stop()
    monkeypatch.setattr(GuardedToolbox, "start", start)
    second = await daemons.start(home=home, plugins=shop.plugins)
    await ends(second, told["turn_id"], TurnState.DONE)
    assert shop.runs == [("pay", 0)]


async def test_an_agent_that_is_called_waits_without_its_caller(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    caller = await daemon.agent("caller", tools=TOOLS)
    called = await daemon.agent("called", tools=TOOLS)
    daemon.model.calls("agent_call", agent_id=called.id, message="pay")
    daemon.model.calls("pay")
    assert (await caller.send("have it paid")).status_code == 200
    (row,) = await listed(daemon)
    assert f"waiting for approval {row['id']}" in results(daemon)[0]
    await answer(daemon, row["id"])
    await ends(daemon, row["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_an_answer_before_the_turn_has_stopped_is_not_lost(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    real, asked = daemon.daemon.approvals.ask, Pause()

    async def ask_slowly(*what: object) -> object:
        try:
            return await real(*what)  # type: ignore[arg-type]
        except Waiting:
            await asked.wait()
            raise

    daemon.daemon.approvals.ask = ask_slowly  # type: ignore[method-assign,assignment]
    daemon.model.calls("pay")
    sent = asyncio.create_task(agent.send("pay"))
    await asked.reached.wait()
    (row,) = await listed(daemon)
    assert (await answer(daemon, row["id"])).status_code == 200
    asked.go_on()
    assert (await sent).status_code == 202
    await ends(daemon, row["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_an_answer_to_the_next_question_before_the_turn_has_stopped_is_not_lost(
    daemons: Daemons, shop: Shop
) -> None:
    shop.second["pay"] = ask("Does the other guard agree?")
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    real, asked = daemon.daemon.approvals.ask, Pause()

    async def ask_slowly(*what: object) -> object:
        try:
            return await real(*what)  # type: ignore[arg-type]
        except Waiting:
            await asked.wait()
            raise

    daemon.daemon.approvals.ask = ask_slowly  # type: ignore[method-assign,assignment]
    await answer(daemon, told["approval_id"])
    await asked.reached.wait()
    (row,) = await listed(daemon, state="pending")
    assert (await answer(daemon, row["id"])).status_code == 200
    asked.go_on()
    await ends(daemon, row["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_what_was_asked_of_a_session_is_not_summarised_away(
    daemons: Daemons, shop: Shop
) -> None:
    config = "[compaction]\nthreshold_messages = 4\nkeep_recent = 2\n"
    daemon: RunningDaemon = await daemons.start(config=config, plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    await agent.ask("before")
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    for number in range(3):
        await agent.ask(f"message {number}")
    await daemon.http.post(f"/api/agents/{agent.id}/session/compact")
    await answer(daemon, told["approval_id"])
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_plugins_hear_of_a_question_and_its_answer(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    heard: list[tuple[str, str]] = []

    def hear(event: Event) -> None:
        heard.append((event.kind, getattr(event, "state", "")))

    daemon.daemon.events.subscribe(hear, ApprovalEvent, TurnEnded)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    await answer(daemon, told["approval_id"])

    async def all_told() -> bool:
        return len(heard) == 4

    await wait_until(all_told, "four events")
    assert heard == [
        ("approval_requested", "pending"),
        ("turn_ended", "waiting"),
        ("approval_answered", "approved"),
        ("turn_ended", "done"),
    ]


async def test_a_question_and_its_answer_are_recorded_or_they_are_not(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    book = Recorded(daemon.daemon.events, ApprovalEvent)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    book.refuses = (ApprovalEvent,)
    refused = await answer(daemon, told["approval_id"])
    assert (refused.status_code, refused.json()["error"]) == (503, "the book is closed")
    (row,) = await listed(daemon)
    assert row["state"] == "pending"
    book.refuses = ()
    await answer(daemon, told["approval_id"])
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert book.kept == book.told
    assert [(each.kind, each.by, each.source) for each in book.kept] == [
        ("approval_requested", "loopback:loopback", agent.id),
        ("approval_answered", "loopback:loopback", ""),
    ]
