"""What records in memory are kept in: a table is a dict, a write all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agenthost_chat.chat import Message, Role

from ....agent import Agent
from ....errors import Conflict, NotFound
from ....ports.events import Keep
from ....ports.persons import Person
from ....ports.records import (
    NOBODY,
    CallState,
    Entry,
    Outcome,
    Step,
    TurnRecord,
    TurnState,
    Writer,
)
from ....ports.sessions import Session
from ....ports.uploads import Upload
from ....ports.usage import Spent

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .places import MemoryPlace

T = TypeVar("T")
TITLE = 80


class Seat:
    """What a process writes as, once it has entered."""

    def __init__(self) -> None:
        self.writer = NOBODY


class Rows:
    """The tables, by what a row is found by."""

    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.sessions: dict[str, Session] = {}
        self.behind_summary: dict[str, frozenset[str]] = {}
        self.pins: dict[tuple[str, int], None] = {}
        self.views: dict[str, tuple[tuple[int, Message | None], ...]] = {}
        self.messages: dict[tuple[str, int], Entry] = {}
        self.superseded: dict[tuple[str, int], Entry] = {}
        self.turns: dict[str, TurnRecord] = {}
        self.calls: dict[tuple[str, str], tuple[CallState, Outcome | None]] = {}
        self.spent: dict[int, Spent] = {}
        self.values: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}
        self.owners: dict[tuple[str, str], str] = {}
        self.persons: dict[str, Person] = {}
        self.links: dict[tuple[str, str], str] = {}
        self.uploads: dict[tuple[str, str], tuple[Upload, bytes]] = {}
        self.epochs: dict[str, int] = {}
        self.holders: dict[str, Writer] = {}
        self.openers: dict[str, Writer] = {}
        self.places: dict[str, tuple[MemoryPlace, ...]] = {}

    def write(self, fn: Callable[..., T], *given: Any) -> asyncio.Future[T]:
        """Call a function here and now; when it raises, nothing was written."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        before = {name: table.copy() for name, table in vars(self).items()}
        try:
            done.set_result(fn(*given))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits
            vars(self).update(before)
            done.set_exception(error)
        return done

    def keep(self, also: Keep | None) -> None:
        """Do what goes with a write: here is no connection to do it with."""
        if also is not None:
            also(cast("Connection", None))

    def session(self, session_id: str) -> Session:
        """Give a session's row, or raise NotFound."""
        if session_id not in self.sessions:
            raise NotFound("session", session_id)
        return self.sessions[session_id]

    def change_session(self, session_id: str, **changes: Any) -> None:
        """Change a session's row, or raise NotFound."""
        changed = replace(self.session(session_id), **changes)
        self.sessions[session_id] = changed

    def open_session(self, session: Session, writer: Writer = NOBODY) -> Session:
        """Add a session; NotFound when its agent is not there."""
        if session.agent_id not in self.agents:
            raise NotFound("agent", session.agent_id)
        self.openers[session.id] = writer
        self.sessions[session.id] = replace(session, updated_at=session.created_at)
        return self.sessions[session.id]

    def by_key(self, agent_id: str, key: str | None) -> Session | None:
        """Find the session that an agent's key stands for."""
        for session in self.sessions.values():
            found = (session.agent_id, session.key) == (agent_id, key or "")
            if found and session.archived_at is None:
                return session
        return None

    def take_out(self, session_id: str) -> None:
        """Take a session out of the archive; Conflict when its key is another's."""
        session = self.session(session_id)
        known = self.by_key(session.agent_id, session.key)
        if known is not None and known.id != session_id:
            raise Conflict("another session has its key by now; archive that one first")
        self.change_session(session_id, archived_at=None)

    def is_own(self, session_id: str) -> bool:
        """Tell whether an agent goes on in the session."""
        return session_id in {agent.session_id for agent in self.agents.values()}

    def spoken(self, session_id: str) -> list[Entry]:
        """Give what stands in a session, each turn in its own place."""
        found = [e for (owner, _), e in self.messages.items() if owner == session_id]
        return sorted(found, key=lambda each: (each.place, each.seq))

    def append(self, step: Step, message: Message) -> None:
        """Add what a step says; NotFound when the session has been deleted."""
        session = self.session(step.session_id)
        if (at := (step.session_id, step.seq)) in self.messages | self.superseded:
            raise LookupError("another writer has used the number")
        place = step.seq if step.behind is None else step.behind
        broke_off = step.closed is not None and step.closed.state is not TurnState.DONE
        facts = step.seq, place, step.turn_id, step.at, broke_off, step.labels
        self.messages[at] = Entry(message, *facts)
        title = " ".join(message.text.split())[:TITLE]
        self.change_session(
            session.id,
            next_seq=step.seq + 1,
            updated_at=step.at,
            message_count=session.message_count + (message.role is not Role.TOOL),
            title=session.title or ("" if step.seq else title),
        )

    def supersede(self, at: tuple[str, int]) -> None:
        """Take a message out of its session; its number is not given again."""
        entry = self.superseded[at] = self.messages.pop(at)
        count = self.session(at[0]).message_count
        shown = entry.message.role is not Role.TOOL
        self.change_session(at[0], message_count=count - shown)

    def erase_sessions(self, ids: Iterable[str]) -> None:
        """Delete sessions; turns that a fork still shows stay."""
        for session_id in ids:
            self.sessions.pop(session_id, None)
            self.behind_summary.pop(session_id, None)
            self.views.pop(session_id, None)
            for at in [each for each in self.pins if each[0] == session_id]:
                del self.pins[at]
            told = self.messages | self.superseded
            here = {e.turn_id for (owner, _), e in told.items() if owner == session_id}
            for table in (self.messages, self.superseded):
                for at in [each for each in table if each[0] == session_id]:
                    del table[at]
            shown = {e.turn_id for e in (self.messages | self.superseded).values()}
            self._forget_turns({turn for turn in here - shown if turn is not None})

    def _forget_turns(self, ids: set[str]) -> None:
        for turn in ids:
            self.turns.pop(turn, None)
        for at in [each for each in self.calls if each[0] in ids]:
            del self.calls[at]

    def book(self, spent: Spent) -> None:
        """Add a row to the ledger."""
        self.spent[len(self.spent)] = spent
