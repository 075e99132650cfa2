"""Agents, words and steps that the contracts of RECORDS speak of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from agenthost_chat.chat import (
    Citation,
    Message,
    Role,
    Text,
    ToolOutput,
    ToolUse,
    Usage,
)

from ....agent import Agent, AgentMode, AgentState
from ....context import UNTRUSTED
from ....errors import NotFound, Unavailable
from ....manifest_model import Manifest
from ....ports.records import Records, Step, TurnRecord, TurnResult, TurnState
from ....ports.sessions import Session, SessionFilter
from ....ports.usage import Spent
from ...clock import START, ManualClock

OpenRecords = Callable[[], Records]

ADA = Agent(
    id="ada-id",
    name="ada",
    state=AgentState.RUNNING,
    mode=AgentMode.NORMAL,
    session_id="ada-session",
    manifest=Manifest(name="ada"),
    pinned_model=None,
    created_at=START,
    updated_at=START,
)
BOB = replace(
    ADA,
    id="bob-id",
    name="bob",
    session_id="bob-session",
    manifest=Manifest(name="bob"),
    created_at=START + 1,
)
HERE = ADA.session_id
"""The session that most of it happens in."""
PAGES = (Citation("https://lisbon.example/é", "Lisbon"), Citation("http://b.example"))
RESULT = TurnResult("Done.", Usage(10, 5), 2, 7, "p/m", UNTRUSTED, None, PAGES)
DONE = TurnRecord(TurnState.DONE, RESULT)
KNOWN = replace(DONE, agent_id=ADA.id, session_id=HERE)
"""A turn of ada's that is done, as it is found."""
SPENT = Spent(START, ADA.id, HERE, "t", "p", "m", Usage(10, 5, 1, 2, 3), 7)


def user(text: str) -> Message:
    """What a person says."""
    return Message(Role.USER, (Text(text),))


def answer(text: str) -> Message:
    """What a model says."""
    return Message(Role.ASSISTANT, (Text(text),))


def asking(*calls: str) -> Message:
    """What a model says that wants some calls."""
    uses = (ToolUse(call, "kv_set", {"key": "é"}) for call in calls)
    return Message(Role.ASSISTANT, (Text("I will."), *uses))


def output(call: str) -> ToolOutput:
    """What came of a call."""
    return ToolOutput(call, "kv_set", f"did {call}")


def results(*calls: str) -> Message:
    """What came of some calls."""
    return Message(Role.TOOL, tuple(output(call) for call in calls))


def step(
    seq: int = 0,
    message: Message | None = None,
    session: str = HERE,
    turn: str = "t",
    **facts: Any,
) -> Step:
    """What a turn writes at one point."""
    return Step(session, turn, START, seq, message, **facts)


def ended(state: TurnState, error: Any = None) -> TurnRecord:
    """How a turn ended."""
    return TurnRecord(state, RESULT, error)


class Beside:
    """What goes with a write; it counts, and raises while it is told to."""

    def __init__(self) -> None:
        self.times = 0
        self.refuses = False

    def __call__(self, connection: object) -> None:
        """Be written."""
        del connection
        if self.refuses:
            raise Unavailable("the book is closed")
        self.times += 1


async def say(records: Records, session_id: str, *texts: str, turn: str = "") -> None:
    """Have turns of one question and one answer each."""
    for text in texts:
        session = await records.sessions.get(session_id)
        seq = session.next_seq
        here = turn or f"{session_id}:{seq}"
        asked = step(seq, user(text), session_id, here, opened=session.agent_id)
        said = answer(f"re {text}")
        told = step(seq + 1, said, session_id, here, closed=DONE)
        await records.journal.keep(asked, told)


async def ask_for(records: Records, *calls: str) -> None:
    """Begin a turn that wants some calls."""
    await records.journal.keep(step(0, user("go"), opened=ADA.id))
    await records.journal.keep(step(1, asking(*calls)))


async def said(records: Records, session_id: str = HERE) -> list[str]:
    """Read the words of a conversation."""
    session = await records.sessions.get(session_id)
    history = await records.sessions.history(session)
    return [message.text for message in history.messages]


async def listed(records: Records, **wanted: Any) -> list[str]:
    """Name the sessions of a list."""
    found = await records.sessions.list(SessionFilter(**wanted))
    return [session.id for session in found]


async def is_gone(records: Records, session_id: str) -> bool:
    """Tell whether there is no such session."""
    try:
        await records.sessions.get(session_id)
    except NotFound:
        return True
    return False


async def refused(written: Awaitable[object]) -> Exception:
    """Demand that a write fails, in whatever words of its store."""
    try:
        await written
    except Exception as error:  # noqa: BLE001 - each store has its own
        return error
    pytest.fail("it was written")


async def states(records: Records, turn: str = "t") -> dict[str, str]:
    """Tell where the calls of a turn stand."""
    calls = await records.journal.calls(turn)
    return {call: state.value for call, (state, _) in calls.items()}


async def summarise(records: Records, first_seq: int) -> Session:
    """Let a summary stand for what is before a message."""
    session = await records.sessions.get(HERE)
    await records.sessions.compact(session, first_seq, user("so far"), SPENT)
    return await records.sessions.get(HERE)


async def start_again(records: Records) -> int:
    """Do what a daemon does at its start; count the turns that were cut off."""
    writer = await records.journal.enter("here")
    return await records.journal.interrupt(writer)


class RecordsFixtures:
    """What every contract of RECORDS asks for.

    A subclass overrides the fixture ``opened``: a function that opens the records over
    the fixture ``clock``. What it opens the second time is what a next process finds.
    """

    patience: float = 30.0
    """Seconds within which what must happen has happened."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        """The time as the records know it."""
        return ManualClock()

    @pytest.fixture
    def opened(self, clock: ManualClock) -> OpenRecords:
        """What opens the records."""
        del clock
        pytest.fail("override the fixture `opened` with what opens the records")

    @pytest_asyncio.fixture
    async def records(self, opened: OpenRecords) -> AsyncIterator[Records]:
        """The records of two agents, ada and bob."""
        records = opened()
        for agent in (ADA, BOB):
            await records.agents.add(agent)
        yield records
        await records.journal.stop()
