"""The port JOBS: durable work that happens once, whoever runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from agenthost_chat.chat import Json
from agenthost_values.value_class import value_class

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ..context import Context


class JobState(StrEnum):
    """Where a job stands.

    FAILED: its last attempt failed. POISONED: its last attempt died with the process,
    which it may well have killed, so that it is not begun again.
    """

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    POISONED = "poisoned"
    CANCELLED = "cancelled"


@value_class
class Job:
    """A job as it stands; times are epoch seconds.

    ``epoch`` counts its runs, ``attempts`` those since it last finished a step; one
    that an orderly stop cut short is no attempt. A run is leased: its process is
    ``holder`` and renews ``until`` while it lives. ``error`` is what the last attempt
    failed with: the message of an error of ours, no inner words of another. ``owner``
    (``kind:name``) caused it, "" when nobody said, and ``labels`` are those of all that
    it is made from.
    """

    id: str
    key: str
    kind: str
    payload: Json
    state: JobState
    due: float
    epoch: int
    attempts: int
    result: Json
    error: str | None
    created_at: float
    updated_at: float
    holder: str | None = None
    until: float | None = None
    owner: str = ""
    labels: frozenset[str] = frozenset()


class RunningJob(Protocol):
    """A job as its handler sees it: what to do, and steps that happen once."""

    job: Job
    payload: Json

    async def step(
        self, name: str, work: Callable[[], Awaitable[Json]], rows: Rows | None = None
    ) -> Json:
        """Do a piece of work once, however often the job runs, and give its output.

        ``rows(connection, output)`` runs in the transaction that remembers the output.
        A crash before it repeats ``work``: key effects on the outside by job and name.

        Raises:
            Superseded: The job was cancelled or runs again; nothing was committed.
            InvalidInput: The output is not JSON.
        """


Rows = Callable[["Connection", Json], None]
JobHandler = Callable[[RunningJob], Awaitable[Json]]


class Jobs(Protocol):
    """Durable work: a key names a piece of work as long as its job is kept."""

    def register(self, kind: str, handler: JobHandler, attempts: int = 3) -> None:
        """Say who does the work of a kind; jobs without a handler wait.

        What fails, or dies with the process, is tried again after a growing pause,
        until so many attempts in a row finished no step.

        Raises:
            Conflict: The kind has a handler.
            InvalidInput: There is no attempt.
        """

    async def submit(
        self,
        kind: str,
        key: str,
        payload: Json,
        due: float | None = None,
        *,
        context: Context | None = None,
    ) -> str:
        """Ask for work once, from ``due`` on; give the job's id once it is on disk.

        Owner and labels of the job are those of the ``context`` that causes it.

        Raises:
            InvalidInput: The key is empty or the payload is not JSON.
        """

    async def get(self, job: str) -> Job:
        """Give a job by its id, or raise NotFound."""

    async def list(
        self, kind: str | None = None, state: JobState | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """Give jobs, newest first, of one kind or state when named."""

    async def cancel(self, job: str) -> Job:
        """End a job that has not ended, and its handler; give it as it stands then.

        Raises:
            NotFound: There is none.
        """

    async def start(self) -> None:
        """Take up what a dead process left running, and run what is due."""

    async def stop(self) -> None:
        """Stop running jobs; they run again after the next start."""
