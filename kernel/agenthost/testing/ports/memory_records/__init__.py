"""Records that are kept in memory, for tests of what reads and writes them."""

from __future__ import annotations

from ....clock import Clock
from ....ports.records import Records
from .agents import MemoryAgents
from .journal import MemoryJournal
from .ledger import MemoryLedger
from .persons import MemoryPersons
from .rows import Rows, Seat
from .sessions import MemorySessions
from .uploads import MemoryUploads
from .values import MemoryValues


class MemoryRecords(Records):
    """Agents, conversations, turns, usage, memory, people and files in memory.

    Args:
        clock: Tells when a session was opened or put away.
        rows: What is there already; rows go there, as to a file.
    """

    __slots__ = ()

    def __init__(self, clock: Clock, rows: Rows | None = None) -> None:
        rows = Rows() if rows is None else rows
        seat = Seat()
        super().__init__(
            agents=MemoryAgents(rows),
            sessions=MemorySessions(rows, clock, seat),
            journal=MemoryJournal(rows, seat),
            usage=MemoryLedger(rows),
            memory=MemoryValues(rows),
            persons=MemoryPersons(rows),
            uploads=MemoryUploads(rows),
        )
