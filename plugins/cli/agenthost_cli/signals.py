"""SIGINT and SIGTERM, heard in a thread of their own, whatever the event loop does.

Python runs signal handlers in the main thread, between two of its instructions: a
loop that spins, or sits in a C function, would hear nothing. The wake-up descriptor is
written by the C handler itself, and a thread reads it. Blocking the signals and waiting
for them with ``sigwait`` would do as well, but child processes inherit the block.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

from . import INTERRUPTED

ENDING = (signal.SIGINT, signal.SIGTERM)
FAILED_END = 70
TAKEN_UP_WITHIN = 10.0
END_WITHIN = 60.0

_log = logging.getLogger("agenthost.cli.signals")


class Signals:
    """Calls ``first`` at the first signal; the second one ends the process at once.

    Args:
        first: Called in the thread of signals; whoever it reaches calls
            :meth:`taken_up`. When nobody does, the process ends itself.
    """

    def __init__(self, first: Callable[[], None]) -> None:
        self._first = first
        self._count = 0
        self._taken_up = threading.Event()

    def listen(self) -> None:
        """Hear signals from now on; only in the main thread."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        # Python runs its handlers in the main thread between two instructions: a loop
        # that is stuck in C would never hear of a signal. The system writes it into
        # this pipe.
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, _nothing)
        hear = partial(self._hear, read)
        threading.Thread(target=hear, name="signals", daemon=True).start()

    def taken_up(self) -> None:
        """Tell that the end is under way; from now on it has a minute."""
        if not self._taken_up.is_set():
            self._taken_up.set()
            threading.Thread(target=_last_minute, name="signals", daemon=True).start()

    def _hear(self, read: int) -> None:
        while numbers := os.read(read, 64):
            for number in numbers:
                if number in ENDING:
                    self._on_signal()

    def _on_signal(self) -> None:
        self._count += 1
        if self._count > 1:
            # Whoever asks a second time has waited long enough, and nothing may be in
            # the way.
            os._exit(INTERRUPTED)
        self._first()
        threading.Thread(target=self._wait, name="signals", daemon=True).start()

    def _wait(self) -> None:
        if not self._taken_up.wait(TAKEN_UP_WITHIN):
            _log.critical("the event loop does not take up the signal; ending at once")
            os._exit(FAILED_END)


def _last_minute() -> None:
    # The loop has a limit of its own, which is for nothing while it is blocked.
    time.sleep(END_WITHIN)
    _log.critical("the end takes longer than %g s; ending at once", END_WITHIN)
    os._exit(FAILED_END)


def _nothing(_number: int, _frame: object) -> None:
    """Stand in for the default action; the thread does the work."""
