"""What plugins cost: calls, time, and how long the event loop stood still in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Charge:
    """A plugin's account; times in seconds, waits included.

    ``stalled_in`` names function and line where the loop stood still last.
    """

    calls: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    stalls: int = 0
    stalled: float = 0.0
    stalled_in: str = ""


class Charges:
    """The accounts of one daemon's plugins by key.

    ``last_stall`` is the time (epoch seconds) when the loop last went on again.
    Any thread adds to them, without a lock: two at the same moment may count as one.
    """

    def __init__(self) -> None:
        self.accounts: dict[str, Charge] = {}
        self.last_stall = 0.0

    @contextmanager
    def timed(self, plugin: str) -> Iterator[None]:
        """Charge what the block takes to the plugin."""
        begun = time.monotonic()
        try:
            yield
        finally:
            taken = time.monotonic() - begun
            account = self.of(plugin)
            account.calls += 1
            account.seconds += taken
            account.longest = max(account.longest, taken)

    def of(self, plugin: str) -> Charge:
        """Give the account of a plugin, a new one at its first charge."""
        return self.accounts.setdefault(plugin, Charge())
