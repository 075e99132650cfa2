"""What is held back of turns whose session goes with them."""

import asyncio
from dataclasses import replace

import pytest
from agenthost import (
    Message,
    NotFound,
    Role,
    Session,
    Step,
    Superseded,
    Text,
    ToolUse,
    TurnRecord,
    TurnResult,
    TurnState,
    Unavailable,
    Usage,
)
from agenthost_records.fleeting import FleetingTurns

OWN = Session("own", "ada", 0.0, ephemeral=True)
BEGUN = Step(
    "own", "t", 0.0, message=Message(Role.USER, (Text("?"),)), opened="ada", own=OWN
)
CUT = Step("own", "t", 1.0, own=OWN)
CALLING = Message(Role.ASSISTANT, (ToolUse("c", "look", {}),))
CALLS = Step("own", "t", 2.0, 1, CALLING, own=OWN)
ENDED = Step(
    "own",
    "t",
    3.0,
    own=OWN,
    closed=TurnRecord(TurnState.DONE, TurnResult("!", Usage(), 1, 0)),
)


@pytest.fixture
def turns() -> FleetingTurns:
    return FleetingTurns()


async def written(
    turns: FleetingTurns, *steps: Step, fault: Exception | None = None
) -> tuple[Step, ...]:
    """Write the next steps of a turn, or fail to; give what is written as rows."""
    rows = turns.rows(steps)
    write: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    turns.follow(steps, write)
    if fault is None:
        write.set_result(None)
    else:
        write.set_exception(fault)
        write.exception()
    await asyncio.sleep(0)
    return rows


async def test_nothing_of_a_turn_without_effects_is_written(
    turns: FleetingTurns,
) -> None:
    for step in (BEGUN, CUT, ENDED):
        assert await written(turns, step) == ()
    # Nothing of it is remembered.
    assert await written(turns, CUT) == (CUT,)


async def test_its_rows_are_written_when_a_tool_is_called(turns: FleetingTurns) -> None:
    await written(turns, BEGUN)
    await written(turns, CUT)
    assert await written(turns, CALLS) == (BEGUN, CUT, CALLS)
    # They are on disk, and erased at its end.
    assert await written(turns, ENDED) == (ENDED,)


async def test_its_rows_are_written_when_it_is_kept(turns: FleetingTurns) -> None:
    kept = replace(ENDED, own=replace(OWN, key="k"))
    await written(turns, BEGUN)
    assert await written(turns, kept) == (BEGUN, kept)


@pytest.mark.parametrize("step", [CALLS, ENDED])
async def test_what_could_not_be_written_is_held_back_still(
    turns: FleetingTurns, step: Step
) -> None:
    """Else its end would look for rows that are not there, and leave no record."""
    await written(turns, BEGUN)
    await written(turns, step, fault=Unavailable("the disk is full"))
    for _ in range(2):
        assert await written(turns, ENDED, fault=Unavailable("still")) == ()
    assert await written(turns, ENDED) == ()


@pytest.mark.parametrize("fault", [NotFound("session", "own"), Superseded("others")])
async def test_what_is_not_tried_again_is_forgotten(
    turns: FleetingTurns, fault: Exception
) -> None:
    await written(turns, BEGUN)
    await written(turns, ENDED, fault=fault)
    assert await written(turns, CUT) == (CUT,)
