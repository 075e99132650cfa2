"""What a start needs of the rows without SQLAlchemy; the rest when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from agenthost import Agent, Clock, Records, Store, Writer

from .agent_rows import agent_of
from .seat import Seat

_AGENTS = "SELECT * FROM agents ORDER BY created_at, id"
_ENTER = (
    "INSERT INTO nodes (node, epoch, seen) VALUES (:node, 1, :now) "
    "ON CONFLICT (node) DO UPDATE SET epoch = nodes.epoch + 1, seen = :now "
    "RETURNING epoch"
)
_LEFT = (
    "SELECT 1 FROM turns WHERE state = 'running' "
    "UNION ALL SELECT 1 FROM tool_calls WHERE state = 'started' "
    "UNION ALL SELECT 1 FROM session_holders "
    'UNION ALL SELECT 1 FROM sessions WHERE ephemeral = 1 AND "key" IS NULL LIMIT 1'
)
"""What an end that was none has left."""


class Deferred:
    """Stands for an object that is made when something of it is asked for.

    Args:
        module: The module of this package that has its class.
        kind: Its class.
        given: What it is made of.
    """

    def __init__(self, module: str, kind: str, *given: object) -> None:
        self._make = module, kind, given
        self._made: Any = None

    def __getattr__(self, name: str) -> Any:
        """Ask the object; what it answers stands here from then on."""
        if self._made is None:
            module, kind, given = self._make
            self._made = getattr(import_module(module, __package__), kind)(*given)
        found = getattr(self._made, name)
        setattr(self, name, found)
        return found


class DeferredAgents(Deferred):
    """The agents of one daemon, who are read at its start."""

    def __init__(self, store: Store) -> None:
        super().__init__(".agents", "AgentTable", store)
        self._store = store

    async def load(self) -> list[Agent]:
        """Read all, oldest first."""
        return [agent_of(row) for row in await self._store.read(_AGENTS)]


class DeferredJournal(Deferred):
    """The journal of one daemon, whose start looks for what the last end has left."""

    def __init__(self, store: Store, clock: Clock, seat: Seat) -> None:
        super().__init__(".journal", "TurnJournal", store)
        self._store = store
        self._clock = clock
        self._seat = seat

    async def enter(self, node: str) -> Writer:
        """Begin the next epoch of a node, as which this process writes from now on."""
        named = {"node": node, "now": self._clock.time()}
        (row,) = await self._store.change(_ENTER, named)
        self._seat.writer = Writer(node, row["epoch"])
        return self._seat.writer

    async def interrupt(self, writer: Writer) -> int:
        """Mark what earlier epochs of the node left running; count the turns."""
        if await self._store.first(_LEFT) is None:
            return 0
        return int(await self.mark_interrupted(writer))

    async def stop(self) -> None:
        """Try no more to write what could not be written."""
        if self._made is not None:
            await self._made.stop()


def defer(store: Store, clock: Clock) -> Records:
    """Serve the rows of a store; what reads and writes them is yet to be imported."""
    seat = Seat()
    deferred: dict[str, Any] = {
        "agents": DeferredAgents(store),
        "sessions": Deferred(".sessions", "SessionTable", store, clock, seat),
        "journal": DeferredJournal(store, clock, seat),
        "usage": Deferred(".usage", "UsageLedger", store),
        "memory": Deferred(".memory", "KeyValues", store, clock),
        "persons": Deferred(".persons", "PersonTable", store, clock),
        "uploads": Deferred(".uploads", "UploadTable", store),
    }
    return Records(**deferred)


def warm_up() -> None:
    """Import what reads and writes the rows."""
    for name in (
        "agents",
        "journal",
        "memory",
        "persons",
        "sessions",
        "uploads",
        "usage",
    ):
        import_module(f".{name}", __package__)
