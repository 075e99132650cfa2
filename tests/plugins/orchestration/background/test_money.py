"""A source spends no more in a day than its allowance, however much is done at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from agenthost import Context, NotFound, Pool, Usage
from agenthost.testing import Daemons, ManualClock, Pause
from agenthost_orchestration.background.errands import (
    Errand,
    OccasionState,
    SessionMode,
)

from .stage import ME, Stage, stage_of

REFUSE = '[background]\nover_allowance = "refuse"\n'
CHEAP = Usage(1_000, 1_000)
"""3,000 micro-USD at the scripted model's prices."""


async def test_two_at_once_do_not_overspend_one_allowance(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start(config=REFUSE))
    agent = await stage.daemon.agent("ada", (), "[model]\nmax_tokens = 1000\n")
    allowance = 10_000
    stage.dial.errands["noon"] = Errand(
        ME, agent.id, "one", allowance_micro_usd=allowance
    )
    for _ in range(12):
        stage.daemon.model.says("dear", usage=CHEAP)
    made = [stage.occasion() for _ in range(12)]
    await stage.write(*made)
    stage.background.wake()
    ended = [await stage.ended(each.id) for each in made]
    spent = sum(each.cost_micro_usd for each in ended)
    ledger = await stage.daemon.daemon.usage.of_agent(agent.id)
    assert spent == ledger.cost_micro_usd
    assert 0 < spent <= allowance
    assert {each.state for each in ended} >= {OccasionState.DONE}
    others = [each for each in ended if each.state is not OccasionState.DONE]
    assert {each.code for each in others} == {"quota_exceeded"}
    assert any("of its 0.01 USD of today" in each.detail for each in others)


@pytest.mark.conformance
@pytest.mark.setting("background.over_allowance")
async def test_what_is_spent_is_anew_the_next_day_of_utc(daemons: Daemons) -> None:
    clock = ManualClock()
    stage = stage_of(await daemons.start(clock=clock, config=REFUSE))
    agent = await stage.daemon.agent("ada", (), "[model]\nmax_tokens = 1000\n")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one", allowance_micro_usd=3_500)
    stage.daemon.model.says("dear", usage=Usage(1_000, 1_250))
    assert (await stage.done()).state is OccasionState.DONE
    refused = await stage.done()
    assert (refused.state, refused.code) == (OccasionState.REFUSED, "quota_exceeded")
    assert "00:00 UTC" in refused.detail
    assert "raise its allowance" in refused.detail
    assert stage.dial.pauses == {}
    await clock.advance(86_400)
    assert (await stage.done()).state is OccasionState.DONE


@pytest.mark.conformance
async def test_an_allowance_of_nothing_allows_nothing(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one", allowance_micro_usd=0)
    assert (await stage.done()).state is OccasionState.REFUSED
    assert stage.daemon.model.requests == []


@pytest.mark.conformance
async def test_what_was_spent_before_a_start_counts(daemons: Daemons) -> None:
    first = stage_of(await daemons.start(config=REFUSE))
    agent = await first.daemon.agent("ada", (), "[model]\nmax_tokens = 1000\n")
    errand = Errand(ME, agent.id, "one", allowance_micro_usd=3_500)
    first.dial.errands["noon"] = errand
    first.daemon.model.says("dear", usage=Usage(1_000, 1_250))
    await first.done()
    home = first.daemon.daemon.home
    await first.daemon.daemon.stop()
    second = stage_of(await daemons.start(home=home))
    second.dial.errands["noon"] = errand
    assert (await second.done()).state is OccasionState.REFUSED


@pytest.mark.conformance
async def test_what_agents_that_are_called_spend_counts(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    ada = await stage.daemon.agent("ada", extra="[model]\nmax_tokens = 1000\n")
    await stage.daemon.agent("bob", extra="[model]\nmax_tokens = 1000\n")
    stage.dial.errands["noon"] = Errand(ME, ada.id, "one", session=SessionMode.OWN)
    stage.daemon.model.calls("agent_call", agent_id="bob", message="hello")
    stage.daemon.model.says("hello", usage=CHEAP)
    stage.daemon.model.says("done")
    done = await stage.done()
    assert done.cost_micro_usd == 20 + 3_000 + 20


@dataclass
class FakeRun:
    """A run that a test ends."""

    context: Context
    max_cost: int | None
    pause: Pause | None = None
    state: str = "Running"
    output: str | None = None
    error: str = ""
    code: str = ""
    cost_micro_usd: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.state != "Running"

    def end(self, state: str = "Completed", cost: int = 0, error: str = "") -> None:
        self.state, self.cost_micro_usd, self.error = state, cost, error
        self.output = None if error else "reviewed"
        self.changed.set()


@dataclass
class FakeRuns:
    """Runs workflows as a test says: each costs this much."""

    cost: int = 0
    pause: Pause | None = None
    fails: str = ""
    asks: bool = False
    started: dict[str, FakeRun] = field(default_factory=dict)

    async def get(self, id_: str) -> Any:
        """A run."""
        return self.started[id_]

    async def find(self, id_: str) -> Any:
        """A workflow."""
        if id_ != "review":
            raise NotFound("workflow", id_)
        return id_

    async def start(
        self,
        context: Context,
        workflow: Any,
        input: str,  # noqa: A002
        *,
        key: str | None = None,
        within: Pool | None = None,
    ) -> str:
        run_id = f"run-{key}"
        limit = None if within is None else within.limit
        self.started.setdefault(run_id, FakeRun(context, limit))
        return run_id

    async def wait(self, run_id: str) -> None:
        if self.pause is not None:
            await self.pause.wait()
        if not self.asks:
            state = "Failed" if self.fails else "Completed"
            self.started[run_id].end(state, self.cost, self.fails)

    async def cancel(self, run_id: str, by: Context) -> None:
        self.started[run_id].end("Cancelled", error=f"cancelled by {by.owner}")

    @contextmanager
    def watching(self, run_id: str) -> Iterator[asyncio.Event]:
        yield self.started[run_id].changed


async def with_runs(daemons: Daemons, runs: FakeRuns, **options: Any) -> Stage:
    stage = stage_of(await daemons.start(**options))
    background = stage.background
    background.runs = background.workflows = runs
    return stage


def review(**facts: Any) -> Errand:
    return Errand(ME, workflow_id="review", input="this", **facts)


@pytest.mark.conformance
async def test_a_workflow_runs_within_what_is_left(daemons: Daemons) -> None:
    runs = FakeRuns(cost=700)
    stage = await with_runs(daemons, runs, config=REFUSE)
    stage.dial.errands["noon"] = review(allowance_micro_usd=1_000, depth=1)
    done = await stage.done()
    assert (done.state, done.text) == (OccasionState.DONE, "reviewed")
    assert (done.run_id, done.cost_micro_usd) == (f"run-{done.id}", 700)
    again = await stage.done()
    assert [each.max_cost for each in runs.started.values()] == [1_000, 300]
    assert runs.started[again.run_id].context.depth == 1
    assert runs.started[again.run_id].context.pools == ()
    assert (await stage.done()).state is OccasionState.REFUSED


async def test_runs_of_one_source_at_once_do_not_overspend(daemons: Daemons) -> None:
    runs = FakeRuns(cost=400, pause=Pause())
    stage = await with_runs(daemons, runs, config=REFUSE)
    stage.dial.errands["noon"] = review(allowance_micro_usd=1_000)
    made = [stage.occasion() for _ in range(4)]
    await stage.write(*made)
    stage.background.wake()
    assert runs.pause is not None
    await asyncio.wait_for(runs.pause.reached.wait(), 30)
    assert len(runs.started) == 1
    runs.pause.go_on()
    ended = [await stage.ended(each.id) for each in made]
    assert [each.max_cost for each in runs.started.values()] == [1_000, 600, 200]
    assert sum(each.state is OccasionState.REFUSED for each in ended) == 1


@pytest.mark.conformance
async def test_a_run_that_fails_or_is_unknown_is_told(daemons: Daemons) -> None:
    runs = FakeRuns(cost=5, fails="step 2: no such agent")
    stage = await with_runs(daemons, runs)
    stage.dial.errands["noon"] = review()
    done = await stage.done()
    assert (done.state, done.detail) == (OccasionState.FAILED, "step 2: no such agent")
    assert done.cost_micro_usd == 5
    stage.dial.errands["night"] = Errand(ME, workflow_id="other")
    lost = await stage.done("night")
    assert (lost.state, lost.code) == (OccasionState.FAILED, "not_found")


@pytest.mark.conformance
async def test_a_run_is_stopped_by_time_or_by_a_person(daemons: Daemons) -> None:
    clock, runs = ManualClock(), FakeRuns(pause=Pause())
    stage = await with_runs(daemons, runs, clock=clock)
    stage.dial.errands["noon"] = review()
    assert runs.pause is not None
    due = await stage.due()
    await asyncio.wait_for(runs.pause.reached.wait(), 30)
    await clock.advance(601)
    assert (await stage.ended(due)).code == "timeout"
    assert runs.started[f"run-{due}"].state == "Cancelled"
    runs.pause = Pause()
    other = await stage.due()
    await asyncio.wait_for(runs.pause.reached.wait(), 30)
    await stage.daemon.http.post(f"/api/occasions/{other}/cancel")
    assert (await stage.ended(other)).state is OccasionState.CANCELLED
    assert runs.started[f"run-{other}"].state == "Cancelled"


@pytest.mark.conformance
@pytest.mark.parametrize("left", [0, 1_000])
async def test_what_a_run_holds_is_held_again_after_a_start(
    daemons: Daemons, left: int
) -> None:
    from agenthost_orchestration.background.purses import Purses, day_of
    from agenthost_orchestration.background.rows import terms_of, terms_text

    stage = stage_of(await daemons.start())
    host = stage.daemon.daemon
    running = stage.occasion(state=OccasionState.RUNNING)
    await stage.write(running)
    from functools import partial

    from agenthost_orchestration.background.writes import note

    day = day_of(host.clock.time())
    terms = terms_text(terms_of(review(), reserved=1_000 - left))
    values = {"terms": terms, "day": day}
    await host.store.write(partial(note, occasion_id=running.id, values=values))
    purses = Purses(host)
    spending = await purses.join(stage.occasion(), day, 1_000)
    assert spending.purse.left == left


@pytest.mark.conformance
async def test_a_run_that_waits_for_a_person_takes_no_place(daemons: Daemons) -> None:
    runs = FakeRuns(asks=True)
    stage = await with_runs(daemons, runs)
    stage.dial.errands["noon"] = review(allowance_micro_usd=1_000)
    due = await stage.due()
    waiting = await stage.stands(due, OccasionState.WAITING)
    assert waiting.run_id == f"run-{due}"
    runs.started[waiting.run_id].end(cost=300)
    done = await stage.ended(due)
    assert (done.state, done.text) == (OccasionState.DONE, "reviewed")
    assert done.cost_micro_usd == 300
    again = await stage.stands(await stage.due(), OccasionState.WAITING)
    assert runs.started[again.run_id].max_cost == 700
    await stage.daemon.http.post(f"/api/occasions/{again.id}/cancel")
    assert (await stage.ended(again.id)).state is OccasionState.CANCELLED
    assert runs.started[again.run_id].state == "Cancelled"
