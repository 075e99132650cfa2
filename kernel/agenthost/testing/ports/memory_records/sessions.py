"""Conversations in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from agenthost_chat.chat import Message, Role

from ....clock import Clock
from ....errors import Conflict, InvalidInput, NotFound
from ....ports.records import Entry, TurnRecord, TurnState
from ....ports.sessions import ALL_SESSIONS, Conversation, Session, SessionFilter
from ....ports.usage import Spent
from .rows import Rows, Seat

KEY_LIMIT = 256
SETTLED = {TurnState.DONE, TurnState.CANCELLED}
# Inside the class ``list`` is a method.
Entries = list[Entry]


class MemorySessions:
    """Conversations, apart from what turns add to them."""

    def __init__(self, rows: Rows, clock: Clock, seat: Seat | None = None) -> None:
        self._rows = rows
        self._clock = clock
        self._seat = seat or Seat()
        self._known: dict[str, Conversation] = {}
        self._stale: set[str] = set()

    async def open(
        self, agent_id: str, key: str | None = None, *, ephemeral: bool = False
    ) -> Session:
        """Give the agent's session with this key, a new one when there is none."""
        if key is not None and not 1 <= len(key) <= KEY_LIMIT:
            raise InvalidInput("key", f"must have 1 to {KEY_LIMIT} characters")
        if key is not None and key.startswith("turn:"):
            raise InvalidInput("key", "must not begin with turn:")
        found = self._rows.by_key(agent_id, key)
        if found is None:
            now, id_ = self._clock.time(), str(uuid4())
            fresh = Session(id_, agent_id, now, key=key, ephemeral=ephemeral)
            found = self._rows.open_session(fresh, self._seat.writer)
        if found.ephemeral is not ephemeral:
            raise Conflict("the key has a session that ends otherwise; use another key")
        return found

    async def get(self, session_id: str, agent_id: str = "") -> Session:
        """Read a session's row; NotFound also when it is not the agent's."""
        session = self._rows.session(session_id)
        if agent_id not in {"", session.agent_id}:
            raise NotFound("session", session_id)
        return session

    def take(self, session_id: str) -> Conversation | None:
        """Hand what is still known of a conversation to the turn with its mailbox."""
        self._stale.discard(session_id)
        return self._known.pop(session_id, None)

    def give_back(self, session_id: str, known: Conversation | None) -> None:
        """Take it as the turn left it; None when the turn cannot tell."""
        if known is not None and session_id not in self._stale:
            self._known[session_id] = known

    def forget(self, session_id: str) -> None:
        """Something else changes the session: read it anew, also after this turn."""
        self._known.pop(session_id, None)
        self._stale.add(session_id)

    async def of_agent(self, agent_id: str) -> Session:
        """Read the row of an agent's own session, or raise NotFound."""
        if agent_id not in self._rows.agents:
            raise NotFound("agent", agent_id)
        return self._rows.session(self._rows.agents[agent_id].session_id)

    async def entries(self, session: Session) -> Entries:
        """Read what is not summarised, as it stands: each turn in its own place."""
        spoken, first = self._rows.spoken(session.id), session.first_seq
        return [each for each in spoken if min(each.seq, each.place) >= first]

    async def history(self, session: Session) -> Conversation:
        """Read the conversation as a model sees it, the summary first."""
        entries = await self.entries(session)
        known = Conversation(session, [each.message for each in entries])
        if session.summary is not None:
            there = {each.seq for each in entries}
            whole = await self.pinned(session.id)
            pinned = (each.message for each in whole if each.seq not in there)
            said = [session.summary, *pinned, *known.messages]
            known = Conversation(session, said)
            known.labels = self._labels_behind(session.id)
        known.labels = known.labels.union(*(each.labels for each in entries))
        return known

    def _labels_behind(self, session_id: str) -> frozenset[str]:
        before = self._rows.behind_summary.get(session_id, frozenset())
        return before.union(*(e.labels for e in self._rows.spoken(session_id)))

    async def turns(self, session_id: str) -> Mapping[str, TurnRecord]:
        """Read how the turns that spoke in a session stand, by id."""
        spoke = {each.turn_id for each in self._rows.spoken(session_id)}
        return {id_: turn for id_, turn in self._rows.turns.items() if id_ in spoke}

    async def erase(self, session_id: str) -> None:
        """Delete a session that is no agent's own, with its messages and turns."""
        self._refuse_own(session_id)
        self._rows.erase_sessions([session_id])
        self.forget(session_id)

    def _refuse_own(self, session_id: str) -> None:
        if self._rows.is_own(session_id):
            raise Conflict("the session is its agent's own; activate another first")

    async def list(self, wanted: SessionFilter = ALL_SESSIONS) -> Sequence[Session]:
        """Read the rows of sessions that are not ephemeral, without their summary."""
        found = [
            replace(each, summary=None)
            for each in self._rows.sessions.values()
            if not each.ephemeral
            and wanted.agent_id in {"", each.agent_id}
            and wanted.archived in {None, each.archived_at is not None}
        ]
        found.sort(
            key=lambda each: (
                each.updated_at if wanted.newest else each.created_at,
                each.id,
            ),
            reverse=wanted.newest,
        )
        if wanted.after:
            ids = [*(each.id for each in found), wanted.after]
            found = found[ids.index(wanted.after) + 1 :]
        if wanted.text:
            found = [each for each in found if self._has(each, wanted.text)]
        return found[: wanted.limit or None]

    def _has(self, session: Session, text: str) -> bool:
        said = [
            each.message.text
            for each in self._rows.spoken(session.id)
            if each.message.role is not Role.TOOL
        ]
        words = text.casefold().split()
        return any(
            all(word in each.casefold() for word in words)
            for each in (session.title, *said)
        )

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title."""
        line = " ".join(title.split())
        if not line:
            raise InvalidInput("title", "must not be empty")
        self._rows.change_session(session_id, title=line)
        self.forget(session_id)

    async def archive(self, session_id: str, *, on: bool = True) -> None:
        """Put a session into the archive, or take it out."""
        if on:
            self._refuse_own(session_id)
            at = self._rows.session(session_id).archived_at
            now = self._clock.time() if at is None else at
            self._rows.change_session(session_id, archived_at=now)
        else:
            self._rows.take_out(session_id)
        self.forget(session_id)

    async def fork(self, session: Session, before: int | None = None) -> Session:
        """Make a session that begins with what stands before a message, or all."""
        return await self._rows.write(self._fork, session, before)

    def _fork(self, session: Session, before: int | None) -> Session:
        if session.id not in self._rows.sessions:
            raise Conflict("the session was changed while it was forked; try again")
        spoken, summary = self._rows.spoken(session.id), session.summary
        if before is None or before >= session.first_seq:
            first = session.first_seq
            spoken = [
                each
                for each in spoken
                if min(each.seq, each.place) >= first
                or (session.id, each.seq) in self._rows.pins
            ]
        else:
            summary = None
        if before is not None:
            numbers = [each.seq for each in spoken]
            if before not in numbers:
                raise NotFound("message", str(before))
            spoken = spoken[: numbers.index(before)]
        visible = [each for each in spoken if each.message.role is not Role.TOOL]
        now = self._clock.time()
        made = Session(
            id=str(uuid4()),
            agent_id=session.agent_id,
            created_at=now,
            updated_at=now,
            thinking=session.thinking,
            next_seq=len(spoken),
            summary=summary,
            title=session.title if spoken or summary else "",
            parent_id=session.id,
            at_message=before,
            message_count=len(visible) + (summary is not None),
        )
        self._rows.open_session(made)
        for seq, each in enumerate(spoken):
            self._rows.messages[made.id, seq] = self._copy_of(each, seq)
            if (session.id, each.seq) in self._rows.pins:
                self._rows.pins[made.id, seq] = None
        if summary is not None:
            self._rows.behind_summary[made.id] = self._labels_behind(session.id)
        return made

    def _copy_of(self, entry: Entry, seq: int) -> Entry:
        turn = self._rows.turns.get(entry.turn_id or "")
        shown = entry.turn_id if turn and turn.state in SETTLED else None
        return replace(entry, seq=seq, place=seq, turn_id=shown)

    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        """Switch extended thinking for the session."""
        self._rows.change_session(session_id, thinking=on)
        self.forget(session_id)

    async def compact(
        self, session: Session, first_seq: int, summary: Message, spent: Spent | None
    ) -> None:
        """Let the summary stand for what is before ``first_seq``; nothing is lost."""
        if spent is not None:
            self._rows.book(spent)
        now = self._rows.sessions.get(session.id)
        if now is None or now.first_seq != session.first_seq:
            raise Conflict("the session was changed while it was summarised")
        before = self._rows.views.get(session.id, ())
        self._rows.views[session.id] = (*before, (now.first_seq, now.summary))
        at = self._clock.time()
        self._see(session.id, first_seq=first_seq, summary=summary, updated_at=at)

    async def restore(self, session: Session) -> bool:
        """Take the latest summary back; tell whether there was one."""
        now = self._rows.sessions.get(session.id)
        if now is None or now.first_seq != session.first_seq:
            raise Conflict("the session was changed meanwhile; try again")
        views = self._rows.views.get(session.id, ())
        if not views:
            return False
        self._rows.views[session.id] = views[:-1]
        first, summary = views[-1]
        undone = now.next_seq
        self._see(session.id, first_seq=first, summary=summary, undone_at=undone)
        self.forget(session.id)
        return True

    async def pinned(self, session_id: str) -> Entries:
        """Read the messages of a session that no summary leaves out, in order."""
        spoken, pins = self._rows.spoken(session_id), self._rows.pins
        return [each for each in spoken if (session_id, each.seq) in pins]

    async def pin(self, session_id: str, seq: int, *, on: bool = True) -> None:
        """Keep a message whole before summaries, or no longer."""
        for each in self._with_its_result(session_id, seq):
            if on:
                self._rows.pins[session_id, each.seq] = None
            else:
                self._rows.pins.pop((session_id, each.seq), None)
        self._see(session_id)
        self.forget(session_id)

    def _with_its_result(self, session_id: str, seq: int) -> Entries:
        found = self._rows.messages.get((session_id, seq))
        if found is None:
            raise NotFound("message", str(seq))
        if found.message.role is not Role.TOOL and not found.message.tool_uses:
            return [found]
        spoken = self._rows.spoken(session_id)
        turn = [each for each in spoken if each.turn_id == found.turn_id]
        if found.message.role is Role.TOOL:
            others = [each for each in turn[::-1] if each.seq < seq]
        else:
            others = [each for each in turn if each.seq > seq]
        if not others or found.partial or others[0].partial:
            raise Conflict("the call has no result yet; pin it when the turn has ended")
        return [found, others[0]]

    def _see(self, session_id: str, **changes: Any) -> None:
        self._rows.change_session(session_id, **changes)
        now = self._rows.session(session_id)
        shown = [
            each
            for each in self._rows.spoken(session_id)
            if min(each.seq, each.place) >= now.first_seq
            or (session_id, each.seq) in self._rows.pins
        ]
        visible = sum(each.message.role is not Role.TOOL for each in shown)
        count = visible + (now.summary is not None)
        self._rows.change_session(session_id, message_count=count)
