"""What the background asks of workflows: to start a run, to wait for it, to end it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Any, Protocol

from agenthost import Context, Pool


class RunEnd(Protocol):
    """A workflow's run as it stands."""

    @property
    def state(self) -> str:
        """Where it stands; ``Completed`` is the only good end."""

    @property
    def ended(self) -> bool:
        """Whether it has ended; one that has not may wait for a person."""

    @property
    def output(self) -> str | None:
        """What came of it."""

    @property
    def error(self) -> str:
        """Why it failed."""

    @property
    def code(self) -> str:
        """The code of that."""

    @property
    def cost_micro_usd(self) -> int:
        """What it took."""


class Runner(Protocol):
    """Runs workflows durably; of one key there is one run."""

    async def start(
        self,
        context: Context,
        workflow: Any,
        input: str,  # noqa: A002 - the contract's word
        *,
        key: str | None = None,
        within: Pool | None = None,
    ) -> str:
        """Start a run, or find the one of the key; give its id."""

    async def wait(self, run_id: str) -> object:
        """Wait until it has ended, or waits for a person."""

    async def get(self, run_id: str) -> RunEnd:
        """Read it."""

    async def cancel(self, run_id: str, by: Context) -> object:
        """End it; Conflict when it has ended."""

    def watching(self, run_id: str) -> AbstractContextManager[asyncio.Event]:
        """Be told of its changes."""


class Library(Protocol):
    """The workflows there are."""

    async def find(self, reference: str) -> Any:
        """Read one by its id or its name; NotFound, or Conflict where several are."""
