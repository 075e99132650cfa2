"""The port RECORDS: what is kept of agents, conversations, turns, usage and memory.

The kernel has the rules, a backend the rows. What belongs together crosses in one
frozen object and is written wholly or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from agenthost_chat.chat import (
    Citation,
    Finish,
    Json,
    Message,
    ModelSettings,
    ToolOutput,
    ToolUse,
    Usage,
)
from agenthost_values.value_class import value_class

from .persons import Persons
from .sessions import ALL_SESSIONS, Conversation, Session, SessionFilter
from .uploads import Uploads
from .usage import Ledger, Spent

if TYPE_CHECKING:
    from ..agent import Agent
    from ..context import Context
    from ..errors import AgentHostError, Waiting
    from .events import Keep

SHARED = "shared"


def namespace_of(agent_id: str, key: str) -> str:
    """Say where an agent's key lives: ``shared.*`` is common to all agents."""
    return SHARED if key.startswith(f"{SHARED}.") else agent_id


@value_class
class TurnResult:
    """How a turn ended: the answer and what it took.

    ``cost_micro_usd`` is in millionths of a US dollar, ``iterations`` the number of
    model calls, ``model`` the last one that answered, as ``provider/model``; ``labels``
    are those of all that it is made from. ``finish`` is why the model stopped, None
    where it did not, or where nobody wrote it down. ``citations`` are the pages that
    the answer rests on, ``calls`` those that are left to who started the turn, ``stop``
    the word that it ended before, where the provider told; it is not kept.
    """

    text: str
    usage: Usage
    iterations: int
    cost_micro_usd: int
    model: str = ""
    labels: frozenset[str] = frozenset()
    finish: Finish | None = None
    citations: tuple[Citation, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    stop: str = ""


class TurnState(StrEnum):
    """Where a turn stands.

    WAITING turns wait for a person. INTERRUPTED ones were cut off by the daemon's end
    and can be resumed, as FAILED ones can; CANCELLED ones were stopped by a person.
    """

    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


@value_class
class TurnRecord:
    """Where a turn stands and what it came to.

    ``digest`` is what its id was given for, None when nobody gave one; ``settings`` is
    what was asked of its answers, ``owner`` who caused it.
    """

    state: TurnState
    result: TurnResult
    error: AgentHostError | None = None
    agent_id: str = ""
    session_id: str = ""
    digest: str | None = None
    settings: ModelSettings | None = None
    owner: str = ""


@value_class
class Entry:
    """A message as it stands in a session.

    ``place`` orders a session's entries, with ``seq`` among those of one place.
    ``partial`` says that the turn broke off in it. ``turn_id`` is None for messages
    that no turn wrote.
    """

    message: Message
    seq: int
    place: int
    turn_id: str | None
    at: float
    partial: bool = False
    labels: frozenset[str] = frozenset()


class CallState(StrEnum):
    """Where a tool call stands: only STARTED and UNKNOWN may have had an effect."""

    INTENDED = "intended"
    STARTED = "started"
    COMMITTED = "committed"
    UNKNOWN = "unknown"


@value_class
class Outcome:
    """What came of a tool call; not ``known`` is whether it took effect.

    ``waits`` says that a person is asked about it, or about one before it; ``denied``
    by what it was denied: a ``right``, a ``guard`` or an ``approval``; ``ends`` why the
    turn is to end, if the model comes to that again in its next answers.
    """

    output: ToolOutput
    known: bool = True
    labels: frozenset[str] = frozenset()
    waits: Waiting | None = None
    denied: str = ""
    ends: AgentHostError | None = None


@value_class
class Writer:
    """Which daemon writes: its node, and the epoch, which each start of that raises.

    One without a node is nobody: what it opened, any node's start marks as cut off.
    """

    node: str = ""
    epoch: int = 0


NOBODY = Writer()


@value_class
class Step:
    """What a turn writes at one point, in one piece.

    Args:
        session_id: The session it speaks in.
        turn_id: The turn.
        at: When.
        seq: The number of ``message``, the session's next.
        message: What was said. The calls it asks for are intended from now on,
            unless the turn ends with it; those it answers have ended.
        behind: The number of the message that ``message`` stands behind, where later
            ones have been written: a resumed turn answers in its own place.
        unknown: The calls that ``message`` answers without knowing their outcome.
        denied: The calls that it answers which were denied, by id, and by what.
        opened: The id of the agent whose turn begins.
        digest: With ``opened``: what the turn's id was given for.
        settings: With ``opened``: what is asked of its answers, also when it goes on.
        own: An ephemeral session that begins with the turn. Unless it has a key, it
            is on disk only from its first tools on, and gone when the turn is closed.
        reopened: An interrupted or failed turn goes on, and what it was saying when
            it broke off is no longer part of the session.
        spent: What the model call took.
        owner: Who caused it, as ``kind:name``.
        writer: The daemon that runs the turn, which belongs to it while it runs.
        labels: Those of all that was known when it was said.
        closed: How the turn ended. When it is not DONE, ``message`` broke off, and
            how its running calls ended will not be known. When it is WAITING,
            ``message`` stands in for the results until the turn goes on; the
            ``unknown`` calls stay as they are, and the words of the others are kept.
        agent_id: Whose turn it is.
        depth: How many events led to it.
        also: What is written with it.
    """

    session_id: str
    turn_id: str
    at: float
    seq: int = 0
    message: Message | None = None
    behind: int | None = None
    unknown: frozenset[str] = frozenset()
    denied: Mapping[str, str] | None = None
    opened: str | None = None
    digest: str | None = None
    settings: ModelSettings | None = None
    own: Session | None = None
    reopened: bool = False
    spent: Spent | None = None
    owner: str = ""
    writer: Writer = NOBODY
    labels: frozenset[str] = frozenset()
    closed: TurnRecord | None = None
    agent_id: str = ""
    depth: int = 0
    also: Keep | None = None


class AgentRows(Protocol):
    """The agents there are."""

    async def load(self) -> Sequence[Agent]:
        """Read all, oldest first."""

    async def add(self, agent: Agent, also: Keep | None = None) -> None:
        """Add an agent with its session, and in the same commit what goes with it.

        Conflict when another has its name, in whatever case.
        """

    async def save(self, agent: Agent, also: Keep | None = None) -> None:
        """Write how the agent stands now."""

    async def switch_session(self, agent: Agent, old: str, *, keep: bool) -> None:
        """Give the agent the session it names, an empty one when it is new.

        The old one is deleted, or archived when it is to be kept and has messages;
        one of the agent's that was archived no longer is. NotFound when ``old`` is not
        the agent's session now, or it, or the session, has gone or is another's.
        """

    async def delete(self, agent_id: str, also: Keep | None = None) -> None:
        """Remove an agent with its sessions and its memory.

        Its usage stays; that of one that an agent has made is that agent's from then.
        """


class Sessions(Protocol):
    """Conversations, apart from what turns add to them.

    A surface that speaks with several people opens a session for each by a key of its
    own and names it in :class:`TurnOptions`::

        session = await host.sessions.open(agent.id, "channel:telegram:123")
        options = TurnOptions(session_id=session.id)
    """

    async def open(
        self, agent_id: str, key: str | None = None, *, ephemeral: bool = False
    ) -> Session:
        """Give the agent's session with this key, a new one when there is none.

        Asked twice at once it is the same. An archived session has let go of its key:
        the next one asked for is new.

        Args:
            agent_id: Whose it is.
            key: What it is found by, from 1 to 256 characters; None makes a new one.
            ephemeral: It is in no list, and for :meth:`erase` to end; at the latest it
                is gone a day after it was last spoken in, without a key also when the
                daemon starts again.

        Raises:
            NotFound: There is no such agent.
            InvalidInput: The key is empty or too long, or begins with ``turn:``.
            Conflict: The one with this key is ephemeral, or is not.
        """

    async def get(self, session_id: str, agent_id: str = "") -> Session:
        """Read a session's row; NotFound also when it is not the agent's."""

    def take(self, session_id: str) -> Conversation | None:
        """Hand on what is known of a conversation; None when it is to be read."""

    def give_back(self, session_id: str, known: Conversation | None) -> None:
        """Take it as the turn left it; None when the turn cannot tell."""

    def forget(self, session_id: str) -> None:
        """Something else changes the session: read it anew, also after this turn."""

    async def of_agent(self, agent_id: str) -> Session:
        """Read the row of an agent's own session, or raise NotFound."""

    async def entries(self, session: Session) -> list[Entry]:
        """Read what is not summarised, as it stands: each turn in its own place."""

    async def history(self, session: Session) -> Conversation:
        """Read it as a model sees it: the summary, what is pinned, the rest."""

    async def pinned(self, session_id: str) -> Sequence[Entry]:
        """Read the messages of a session that no summary leaves out, in their order."""

    async def pin(self, session_id: str, seq: int, *, on: bool = True) -> None:
        """Keep a message whole before summaries, or no longer; a call with its result.

        NotFound, Conflict without a result yet or with too many, InvalidInput for size.
        """

    async def turns(self, session_id: str) -> Mapping[str, TurnRecord]:
        """Read how the turns that spoke in a session stand, by id."""

    async def erase(self, session_id: str) -> None:
        """Delete a session that is no agent's own, with its messages and turns."""

    async def list(self, wanted: SessionFilter = ALL_SESSIONS) -> Sequence[Session]:
        """Read the rows of sessions that are not ephemeral, without their summary."""

    async def rename(self, session_id: str, title: str) -> None:
        """Give a session another title; NotFound when there is no such session."""

    async def archive(self, session_id: str, *, on: bool = True) -> None:
        """Put a session into the archive, or take it out; an archived one only rests.

        Conflict when it is an agent's own, or its key has another session by now.
        """

    async def fork(self, session: Session, before: int | None = None) -> Session:
        """Make a session that begins with what stands before a message, or with all.

        The original stays as it is. To edit a message, fork before it and say it
        anew; turns that had no whole answer cannot be resumed in the fork.

        Args:
            session: What is forked; it may be archived.
            before: The number of a message in it, also one that was summarised.

        Raises:
            NotFound: There is no such message.
            Conflict: The session was deleted meanwhile.
        """

    async def set_thinking(self, session_id: str, *, on: bool) -> None:
        """Switch extended thinking for the session."""

    async def compact(
        self, session: Session, first_seq: int, summary: Message, spent: Spent | None
    ) -> None:
        """Let the summary stand for what is before ``first_seq``; nothing is lost.

        Conflict when the session has changed or gone since it was read: the call is
        booked all the same. ``spent`` is None when no model was asked.
        """

    async def restore(self, session: Session) -> bool:
        """Take the latest summary back, if any; Conflict if it changed since read."""


class SessionPlace(Protocol):
    """A place in the line for a session, in which all daemons of a database stand."""

    async def reached(self) -> None:
        """Wait until all before it are gone; the session is its own from then on.

        Raises:
            Superseded: Its node has started again, or was taken for dead.
            Conflict: It would wait for itself.
        """

    def leave(self) -> None:
        """Let go of it, reached or not; it is tried until the store takes it."""


class Journal(Protocol):
    """Turns: what was intended, what began, what is known of its end.

    A running turn belongs to one writer: a node, from some epoch of it on. Reopening
    takes it over, from another node too; one that waits is anybody's.
    """

    async def enter(self, node: str) -> Writer:
        """At boot: open a new epoch of a node; earlier ones open no turn any more."""

    def keep(self, *steps: Step) -> asyncio.Future[None]:
        """Write a turn's next steps in one piece; it starts at once, awaited or not.

        Only the first may open the turn, only the last close it. It fails with NotFound
        when the session has been deleted, with Superseded when the turn has ended or
        belongs to another writer, or this one's node has started again; then nothing of
        it is written. Two writers of one session collide on the number, so that neither
        overwrites the other.
        """

    def keep_late(self, step: Step) -> None:
        """Write what closes a turn as soon as the store takes rows again.

        Until then the turn's row says running; the next boot closes what is left. One
        that is Superseded by then is dropped.
        """

    async def close_late(self, session_id: str) -> None:
        """Write now what :meth:`keep_late` has left of a session, if any, or raise."""

    def start_call(
        self,
        turn_id: str,
        call_id: str,
        ended: Sequence[Outcome] = (),
        writer: Writer = NOBODY,
    ) -> asyncio.Future[None]:
        """Write that an effect is about to begin, and what came of those before it."""

    def line_up(
        self, session_id: str, work_id: str, writer: Writer, asked_by: str = ""
    ) -> SessionPlace:
        """Take the last place for a session; it starts at once.

        Where one daemon has the rows alone nobody lines up: its mailboxes do.

        Args:
            session_id: The session.
            work_id: What waits: a turn's id, for a turn.
            writer: Whose it is: what that has not let go of is gone when the node
                starts again, or has died.
            asked_by: The work that waits for it, which holds its own session.
        """

    async def holder(self, session_id: str) -> tuple[str, str] | None:
        """Tell who has the first place for a session: its node, and what waits."""

    async def calls(
        self, turn_id: str
    ) -> Mapping[str, tuple[CallState, Outcome | None]]:
        """Read how a turn's calls stand, by id, with the outcome where it is kept."""

    async def find(self, turn_id: str) -> TurnRecord | None:
        """Read a turn, or None when there is none."""

    async def said(self, session_id: str, turn_id: str) -> list[Entry]:
        """Read what was said in a turn, also when it has been summarised."""

    async def interrupt(self, writer: Writer) -> int:
        """At boot: mark the turns that earlier epochs of the node left running.

        They belong to ``writer`` from then on, as do those of nobody; other nodes' run
        on. It tells how many there were.
        """

    async def stop(self) -> None:
        """Try no more to write what is late; the store is about to close."""


class Memory(Protocol):
    """Values by key; a namespace is an agent's id or ``shared``."""

    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        """Give a key's value and labels; NotFound, or Unavailable when damaged."""

    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        """Put a value under a key; InvalidInput or TooLarge when it cannot be.

        A key has 1 to 256 bytes, a value up to 1 MiB of JSON. Owner and labels are
        those of ``by``.
        """

    async def delete(
        self, by: Context, namespace: str, key: str, also: Keep | None = None
    ) -> None:
        """Forget a key; NotFound when it has no value."""

    async def items(self, namespace: str) -> list[tuple[str, Json]]:
        """Give every key of a namespace with its value, sorted by key."""

    async def search(self, owner: str, agent_id: str, query: str) -> Sequence[Json]:
        """Give what an agent remembers, shared or not, and heard, with all these words.

        Only what ``owner`` caused; "" is anybody. Values come first, then messages,
        each the newest first, as objects: ``kind`` is ``memory`` (with ``key``) or
        ``message`` (with ``session_id``, ``turn_id`` and ``role``); all have ``text``,
        ``at`` and ``labels``.
        """


@value_class
class Records:
    """What a backend opens: the rows of one daemon."""

    agents: AgentRows
    sessions: Sessions
    journal: Journal
    usage: Ledger
    memory: Memory
    persons: Persons
    uploads: Uploads
