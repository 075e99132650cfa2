"""What is held back of turns whose session goes with them."""

import asyncio
from dataclasses import replace

from agenthost import (
    Message,
    Role,
    Session,
    Step,
    Text,
    ToolUse,
    TurnRecord,
    TurnResult,
    TurnState,
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


def test_nothing_of_a_turn_without_effects_is_written() -> None:
    turns = FleetingTurns()
    assert [turns.rows((step,)) for step in (BEGUN, CUT, ENDED)] == [(), (), ()]
    # The next one with this id, after a restart, finds nothing of it here.
    assert turns.rows((CUT,)) == (CUT,)


def test_its_rows_are_written_when_a_tool_is_called() -> None:
    turns = FleetingTurns()
    turns.rows((BEGUN,))
    turns.rows((CUT,))
    assert turns.rows((CALLS,)) == (BEGUN, CUT, CALLS)


def test_its_rows_are_written_when_it_is_kept() -> None:
    turns, kept = FleetingTurns(), replace(ENDED, own=replace(OWN, key="k"))
    turns.rows((BEGUN,))
    assert turns.rows((kept,)) == (BEGUN, kept)


async def test_what_could_not_be_written_is_held_back_still() -> None:
    """Else its end would look for rows that are not there, and leave no record."""
    turns = FleetingTurns()
    turns.rows((BEGUN,))
    write: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    turns.rows((CALLS,))
    turns.follow("t", write)
    write.set_exception(OSError("full"))
    await asyncio.sleep(0)
    assert turns.rows((ENDED,)) == ()


async def test_what_is_on_disk_is_erased_at_the_end() -> None:
    turns = FleetingTurns()
    turns.rows((BEGUN,))
    write: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    turns.rows((CALLS,))
    turns.follow("t", write)
    write.set_result(None)
    await asyncio.sleep(0)
    assert turns.rows((ENDED,)) == (ENDED,)
