"""The port TURNS: what runs the turns of all agents."""

from __future__ import annotations

from typing import Protocol

from ..host import Turns


class Engine(Turns, Protocol):
    """What a backend opens: what plugins use of it, and how the daemon ends it."""

    def admit(self) -> None:
        """From now on run turns; those that were started before have waited.

        A service may start turns while the tools of others are not there yet.
        """

    def refuse_new(self) -> None:
        """From now on start nothing: the daemon is draining."""

    async def drain(self, patience: float) -> None:
        """Wait for running turns, then interrupt what is left: it can be resumed."""
