"""Occasions: each is written once, done once, and its end is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from agenthost import Keep, ProviderFault, Role, TurnState
from agenthost.testing import Daemons, ManualClock, Pause
from agenthost_orchestration.background.background import Background
from agenthost_orchestration.background.errands import (
    Creator,
    Errand,
    OccasionState,
    SessionMode,
    Source,
)
from agenthost_orchestration.background.events import OccasionEnded, OccasionEvent
from agenthost_orchestration.background.tables import occasions
from sqlalchemy import Connection, select

from .stage import ME, Sundial, stage_of, wait_until


async def test_an_occasion_becomes_a_turn_whose_answer_is_kept(
    daemons: Daemons,
) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "ring the bell")
    done = await stage.done()
    assert (done.state, done.text) == (OccasionState.DONE, "You said: ring the bell")
    assert (done.turn_id, done.agent_id) == (done.id, agent.id)
    assert done.cost_micro_usd == 20
    assert done.ended_at is not None
    assert len(stage.daemon.model.requests) == 1


async def test_of_one_key_there_is_one_occasion(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    first, again = stage.occasion(key="12:00"), stage.occasion(key="12:00")
    other = stage.occasion("night", key="12:00")
    assert await stage.write(first, again, other) == [first, other]
    assert await stage.write(again) == []


@pytest.mark.conformance
async def test_a_new_session_is_gone_with_its_turn(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one")
    await stage.done()
    await stage.done()
    assert [len(each.messages) for each in stage.daemon.model.requests] == [1, 1]
    assert await stage.daemon.daemon.sessions.list() != []
    assert (await agent.session())["messages"] == []


@pytest.mark.conformance
async def test_a_persistent_session_goes_on_and_the_agents_own_is_its_own(
    daemons: Daemons,
) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    persistent = Errand(ME, agent.id, "one", session=SessionMode.PERSISTENT)
    stage.dial.errands["noon"] = persistent
    await stage.done()
    await stage.done()
    assert [len(each.messages) for each in stage.daemon.model.requests] == [1, 3]
    stage.dial.errands["noon"] = replace(persistent, session=SessionMode.OWN)
    await stage.done()
    assert len((await agent.session())["messages"]) == 2


async def test_a_rolling_session_keeps_its_last_messages(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    rolling = Errand(ME, agent.id, "one", session=SessionMode.ROLLING, keep=2)
    stage.dial.errands["noon"] = rolling
    for number in range(4):
        stage.dial.errands["noon"] = replace(rolling, prompt=f"say {number}")
        await stage.done()
    asked = stage.daemon.model.requests[-1].messages
    assert [each.role for each in asked][-1] is Role.USER
    words = " ".join(each.text for each in asked)
    assert "say 3" in words
    assert "You said: say 2" in words
    assert "say 1" not in words


@pytest.mark.conformance
async def test_a_custom_event_is_published_once(daemons: Daemons) -> None:
    from agenthost import Custom

    stage = stage_of(await daemons.start())
    heard: list[Custom] = []
    stage.daemon.daemon.events.subscribe(heard.append, Custom)
    told = {"type": "bell", "data": {"strokes": 12}}
    stage.dial.errands["noon"] = Errand(
        ME, event=told, depth=2, labels=frozenset({"untrusted"})
    )
    done = await stage.done()
    assert (done.state, done.labels) == (
        OccasionState.DONE,
        frozenset({"untrusted"}),
    )
    (event,) = heard
    assert (event.id, event.type, event.data) == (done.id, "bell", {"strokes": 12})
    assert (event.depth, event.by) == (2, "operator:operator")


@pytest.mark.conformance
async def test_what_fails_is_told_with_its_code(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one")
    stage.daemon.model.fails(ProviderFault.BAD_REQUEST)
    done = await stage.done()
    assert (done.state, done.code) == (OccasionState.FAILED, "bad_request")
    assert "scripted to fail" in done.detail


@pytest.mark.setting("background.pause_after")
async def test_failures_over_a_bill_in_a_row_pause_the_source(
    daemons: Daemons,
) -> None:
    stage = stage_of(await daemons.start(config="[background]\npause_after = 2\n"))
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one")
    for fault in (ProviderFault.BILLING, None, ProviderFault.AUTH):
        if fault is not None:
            stage.daemon.model.fails(fault)
        await stage.done()
    assert stage.dial.pauses == {}
    stage.daemon.model.fails(ProviderFault.BILLING)
    await stage.done()
    assert "2 failures in a row" in stage.dial.pauses["noon"]
    refused = await stage.done()
    assert refused.state is OccasionState.REFUSED
    assert refused.detail.startswith("paused")
    # Resumed, it starts to count anew.
    stage.dial.pauses.clear()
    stage.daemon.model.fails(ProviderFault.BILLING)
    await stage.done()
    assert stage.dial.pauses == {}


@pytest.mark.conformance
async def test_a_deleted_source_refuses(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    done = await stage.done("nowhere")
    assert (done.state, done.detail) == (
        OccasionState.REFUSED,
        "schedule not found: nowhere",
    )


@pytest.mark.setting("background.max_concurrent")
async def test_no_more_than_allowed_are_done_at_once_and_no_source_is_kept_waiting(
    daemons: Daemons,
) -> None:
    config = "[background]\nmax_concurrent = 2\n"
    stage = stage_of(await daemons.start(config=config))
    agent = await stage.daemon.agent("ada")
    pauses = [Pause() for _ in range(2)]
    for pause in pauses:
        stage.daemon.model.says(pause, "late")
    for number in range(8):
        stage.dial.errands[f"s{number}"] = Errand(ME, agent.id, f"do {number}")
    many = [stage.occasion("s0") for _ in range(20)]
    others = [stage.occasion(f"s{number}") for number in range(1, 8)]
    await stage.write(*many, *others)
    stage.background.wake()
    for pause in pauses:
        await asyncio.wait_for(pause.reached.wait(), 30)
    running = await stage.background.list(state=OccasionState.RUNNING)
    assert len(running) == 2
    for pause in pauses:
        pause.go_on()

    async def all_done() -> bool:
        return len(stage.dial.ends) == 27

    await wait_until(all_done, "all are done")
    order = [each.source_id for each in stage.dial.ends]
    # Twenty of one source do not come before the first of another.
    assert set(order[:10]) >= {f"s{number}" for number in range(8)}


async def test_a_quick_source_of_many_waits_for_others_while_a_slow_one_is_at_work(
    daemons: Daemons,
) -> None:
    config = "[background]\nmax_concurrent = 2\n"
    stage = stage_of(await daemons.start(config=config))
    quick, slow = await stage.daemon.agent("quick"), await stage.daemon.agent("slow")
    stage.dial.errands["slow"] = Errand(ME, slow.id, "do it slowly")
    for number in range(4):
        stage.dial.errands[f"s{number}"] = Errand(ME, quick.id, f"do {number}")
    pause = Pause()
    stage.daemon.model.says(pause, "late")
    await stage.write(stage.occasion("slow"))
    stage.background.wake()
    await asyncio.wait_for(pause.reached.wait(), 30)
    many = [stage.occasion("s0") for _ in range(6)]
    await stage.write(*many, *(stage.occasion(f"s{n}") for n in range(1, 4)))
    stage.background.wake()

    async def all_but_one_done() -> bool:
        return len(stage.dial.ends) == 9

    await wait_until(all_but_one_done, "all but the slow one are done")
    order = [each.source_id for each in stage.dial.ends]
    pause.go_on()
    assert order == ["s0", "s1", "s2", "s3"] + ["s0"] * 5


async def test_32_sources_at_once_are_each_done_once(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    for number in range(32):
        stage.dial.errands[f"s{number}"] = Errand(ME, agent.id, f"do {number}")
    made = [stage.occasion(f"s{number}") for number in range(32)]
    await asyncio.gather(*(stage.write(each) for each in made))
    for _ in range(5):
        stage.background.wake()
    said = [(await stage.ended(each.id)).text for each in made]
    assert sorted(said) == sorted(f"You said: do {number}" for number in range(32))
    assert len(stage.daemon.model.requests) == 32


@pytest.mark.conformance
@pytest.mark.setting("background.max_seconds")
async def test_what_takes_too_long_is_stopped(daemons: Daemons) -> None:
    clock = ManualClock()
    config = "[background]\nmax_seconds = 60\n"
    stage = stage_of(await daemons.start(config=config, clock=clock))
    agent = await stage.daemon.agent("ada")
    pause = Pause()
    stage.daemon.model.says("half", pause, " more")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one")
    due = await stage.due()
    await asyncio.wait_for(pause.reached.wait(), 30)
    await clock.advance(61)
    done = await stage.ended(due)
    assert (done.state, done.code) == (OccasionState.FAILED, "timeout")
    assert "background.max_seconds" in done.detail


@pytest.mark.conformance
async def test_what_is_due_or_runs_can_be_cancelled(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one")
    waiting = stage.occasion()
    await stage.write(waiting)
    path = f"/api/occasions/{waiting.id}/cancel"
    told = (await stage.daemon.http.post(path)).json()
    assert told["state"] == "cancelled"
    assert (await stage.daemon.http.post(path)).status_code == 409
    pause = Pause()
    stage.daemon.model.says("half", pause)
    running = await stage.due()
    await asyncio.wait_for(pause.reached.wait(), 30)
    answer = await stage.daemon.http.post(f"/api/occasions/{running}/cancel")
    assert answer.status_code == 200
    done = await stage.ended(running)
    assert done.state is OccasionState.CANCELLED
    record = await stage.daemon.daemon.journal.find(running)
    assert record is None or record.state is TurnState.CANCELLED
    assert len(stage.daemon.model.requests) == 1


@pytest.mark.conformance
async def test_what_was_due_before_the_start_is_found_by_it(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stage_of(await daemons.start())
    agent = await first.daemon.agent("ada")
    occasion = first.occasion()
    await first.write(occasion)
    home = first.daemon.daemon.home
    await first.daemon.daemon.stop()
    dial = Sundial(errands={"noon": Errand(ME, agent.id, "one")})
    offered = Background.source

    def source(self: Background, source: Source) -> None:
        offered(self, dial if source.kind == dial.kind else source)

    # It asks its source before the start is through.
    monkeypatch.setattr(Background, "source", source)
    second = stage_of(await daemons.start(home=home), dial)
    done = await second.ended(occasion.id)
    assert done.text == "You said: one"


@pytest.mark.conformance
async def test_missed_ones_are_kept_as_they_are(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    missed = stage.occasion(state=OccasionState.MISSED, detail="nothing ran")
    await stage.write(missed)
    kept = await stage.background.occasion(missed.id)
    assert (kept.state, kept.ended_at) == (OccasionState.MISSED, missed.created_at)
    assert await stage.open() == 0


@pytest.mark.conformance
async def test_an_unknown_creator_may_nothing(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(Creator("telegram", "42"), agent.id, "one")
    done = await stage.done()
    assert done.state is OccasionState.REFUSED
    assert "telegram '42'" in done.detail
    assert stage.dial.pauses["noon"] == done.detail
    assert stage.daemon.model.requests == []


async def test_what_is_recorded_of_its_end_is_in_the_commit_of_it(
    daemons: Daemons,
) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one", depth=4)
    events = stage.daemon.daemon.events
    told: list[str] = []
    states: list[str] = []
    query = select(occasions.c.state)

    def record(event: OccasionEvent) -> Keep:
        def keep(connection: Connection) -> None:
            states.append(connection.execute(query).scalar_one())

        return keep

    events.record(record, OccasionEvent)
    events.subscribe(lambda each: told.append(each.kind), OccasionEvent)
    ended: list[OccasionEnded] = []
    events.subscribe(ended.append, OccasionEnded)
    done = await stage.done()
    assert states == ["running", "done"]
    assert told == ["occasion_started", "occasion_ended"]
    (event,) = ended
    assert (event.occasion_id, event.turn_id, event.depth) == (done.id, done.id, 4)
    assert (event.by, event.cost_micro_usd) == ("operator:operator", 20)
