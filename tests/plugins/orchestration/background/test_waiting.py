"""An occasion whose turn waits for a person goes on when the turn does."""

from __future__ import annotations

from pathlib import Path

import pytest
from agenthost import OPERATOR, Context, JobState, TurnState
from agenthost.testing import Daemons
from agenthost_orchestration.background.errands import (
    Creator,
    Errand,
    Occasion,
    OccasionState,
    SessionMode,
)

from ...approvals.stage import TOOLS, Shop, answer, ask, ends, listed
from .stage import ME, Stage, Sundial, stage_of, wait_until

REFUSE = '[background]\nover_allowance = "refuse"\n'


@pytest.fixture
def shop() -> Shop:
    return Shop(asks={"pay": ask()})


async def waiting(stage: Stage, **facts: object) -> tuple[Occasion, str]:
    """Have an occasion come to wait; give it with its approval's id."""
    agent = await stage.daemon.agent("ada", tools=TOOLS)
    stage.dial.errands["noon"] = Errand(ME, agent.id, "pay 5", **facts)  # type: ignore[arg-type]
    stage.daemon.model.calls("pay", amount=5)
    due = await stage.due()
    occasion = await stage.stands(due, OccasionState.WAITING)
    (question,) = await listed(stage.daemon, state="pending")
    assert question["turn_id"] == due
    return occasion, question["id"]


@pytest.mark.conformance
@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_it_goes_on_when_a_person_has_answered(
    daemons: Daemons, shop: Shop, verb: str
) -> None:
    stage = stage_of(await daemons.start(plugins=shop.plugins))
    occasion, approval = await waiting(stage)
    assert "waiting for approval" in occasion.detail
    assert stage.dial.ends == []
    # Its place is for others.
    jobs = stage.daemon.daemon.jobs

    async def ended() -> bool:
        return (await jobs.list("occasion"))[0].state is JobState.DONE

    await wait_until(ended, "its job has ended")
    await answer(stage.daemon, approval, verb)
    done = await stage.ended(occasion.id)
    assert (done.state, done.text) == (OccasionState.DONE, "You said: ")
    assert len(shop.runs) == (verb == "approve")
    assert done.cost_micro_usd == 40
    # The session of its own is gone at the end, and no sooner.
    assert await stage.daemon.daemon.journal.find(occasion.id) is None


async def test_it_goes_on_after_a_start_too(daemons: Daemons, shop: Shop) -> None:
    first = stage_of(await daemons.start(plugins=shop.plugins))
    occasion, approval = await waiting(first)
    home = first.daemon.daemon.home
    await first.daemon.daemon.stop()
    second = await daemons.start(home=home, plugins=shop.plugins)
    stage = stage_of(second, Sundial(errands=first.dial.errands))
    # What it took before the start counts against the source.
    (purse,) = stage.background._worker._purses._open.values()  # type: ignore[union-attr]
    assert purse.pool.used == 20
    await answer(second, approval)
    done = await stage.ended(occasion.id)
    assert (done.state, shop.runs) == (OccasionState.DONE, [("pay", 5)])
    assert done.cost_micro_usd == 40


@pytest.mark.conformance
async def test_it_goes_on_when_it_was_answered_while_nothing_ran(
    daemons: Daemons, shop: Shop, tmp_path: Path
) -> None:
    """The turn has ended before this part of the daemon was there to hear it."""
    without = '[plugins]\ndisable = ["plugin:orchestration"]\n'
    home = tmp_path / "home"
    first = stage_of(await daemons.start(home=home, plugins=shop.plugins))
    occasion, approval = await waiting(first)
    await first.daemon.daemon.stop()
    second = await daemons.start(home=home, config=without, plugins=shop.plugins)
    await answer(second, approval)

    await ends(second, occasion.id, TurnState.DONE)
    await second.daemon.stop()
    (home / "config.toml").write_text("")
    stage = stage_of(await daemons.start(home=home, plugins=shop.plugins))
    done = await stage.ended(occasion.id)
    assert (done.state, done.text) == (OccasionState.DONE, "You said: ")


async def test_its_limits_hold_when_it_goes_on(daemons: Daemons, shop: Shop) -> None:
    stage = stage_of(await daemons.start(plugins=shop.plugins, config=REFUSE))
    occasion, approval = await waiting(stage, depth=3)
    purse = stage.background._worker._purses._open  # type: ignore[union-attr]
    (held,) = purse.values()
    held.pool.limit = held.pool.used
    await answer(stage.daemon, approval)
    done = await stage.ended(occasion.id)
    assert (done.state, done.code) == (OccasionState.FAILED, "quota_exceeded")
    assert len(stage.daemon.model.requests) == 1
    assert purse == {}


@pytest.mark.conformance
async def test_a_turn_that_is_withdrawn_ends_its_occasion(
    daemons: Daemons, shop: Shop
) -> None:
    stage = stage_of(await daemons.start(plugins=shop.plugins))
    occasion, _ = await waiting(stage, session=SessionMode.OWN)
    await stage.daemon.http.delete(f"/api/agents/{occasion.agent_id}")
    done = await stage.ended(occasion.id)
    assert done.state is OccasionState.CANCELLED


@pytest.mark.conformance
async def test_what_waits_can_be_cancelled(daemons: Daemons, shop: Shop) -> None:
    stage = stage_of(await daemons.start(plugins=shop.plugins))
    occasion, _ = await waiting(stage)
    cancelled = await stage.background.cancel(Context(OPERATOR), occasion.id)
    assert cancelled.state is OccasionState.CANCELLED
    assert await listed(stage.daemon, state="pending") == []
    assert shop.runs == []
    assert stage.dial.ends[0].id == occasion.id


@pytest.mark.conformance
async def test_a_named_keys_turn_goes_on_as_well(daemons: Daemons, shop: Shop) -> None:
    master = "master-key-0123456789"
    daemon = await daemons.start(config=f'api_key = "{master}"', plugins=shop.plugins)
    daemon.http.headers["authorization"] = f"Bearer {master}"
    stage = stage_of(daemon)
    await daemon.http.post("/api/keys", json={"name": "ci", "scopes": ["chat"]})
    agent = await daemon.agent("ada", tools=TOOLS)
    stage.dial.errands["noon"] = Errand(Creator("named_key", "ci"), agent.id, "pay")
    daemon.model.calls("pay", amount=5)
    due = await stage.due()
    await stage.stands(due, OccasionState.WAITING)
    (question,) = await listed(daemon, state="pending")

    await answer(daemon, question["id"])
    assert (await stage.ended(due)).state is OccasionState.DONE
