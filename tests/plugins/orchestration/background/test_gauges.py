"""What a monitor sees of occasions."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agenthost.testing import Daemons, ManualClock, Pause
from agenthost_orchestration.background.errands import Errand, OccasionState
from agenthost_orchestration.background.gauges import gauges

from .stage import ME, Stage, stage_of


async def counts(stage: Stage) -> dict[tuple[str, str, str], float]:
    """What is not zero, by name, source and state."""
    told = await gauges(stage.daemon.daemon)
    assert len(told) == len({(name, *labels.values()) for name, labels, _ in told})
    return {(name, *each.values()): n for name, each, n in told if n}  # type: ignore[misc]  # reason: two labels


async def test_occasions_are_counted_by_source_and_state(daemons: Daemons) -> None:
    clock = ManualClock()
    stage = stage_of(await daemons.start(clock=clock))
    agent = await stage.daemon.agent("ada")
    assert await counts(stage) == {}
    pause = Pause()
    stage.daemon.model.says(pause, "done")
    stage.dial.errands["noon"] = Errand(ME, agent.id, "one")
    running = await stage.due()
    await asyncio.wait_for(pause.reached.wait(), 30)
    refused = await stage.done("nowhere")
    assert refused.state is OccasionState.REFUSED
    later = replace(stage.occasion("noon"), created_at=clock.time())
    await stage.write(later)
    assert await counts(stage) == {
        ("occasions", "schedule", "running"): 1,
        ("occasions", "schedule", "due"): 1,
        ("occasions_ended_in_day", "schedule", "refused"): 1,
    }
    stage.daemon.model.says("done")
    pause.go_on()
    await stage.ended(running)
    await stage.ended(later.id)
    assert await counts(stage) == {
        ("occasions_ended_in_day", "schedule", "done"): 2,
        ("occasions_ended_in_day", "schedule", "refused"): 1,
    }
    await clock.advance(86_401)
    assert await counts(stage) == {}
