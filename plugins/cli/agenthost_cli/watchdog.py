"""Name who makes the event loop stand still, and end the process when it stays so.

The loop beats four times a second. A thread that hears no beat for a second names the
code the main thread is in, and ends the process after ``stall_limit_secs``. Where no
thread can run, because a C function holds the interpreter's lock, the timer of
``faulthandler`` ends it: it is a thread in C that needs no interpreter.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import selectors
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agenthost import PluginError

from .blame import MOST_FRAMES, files_of, frames_of, owner, places_of, shown
from .incidents import Incidents
from .settings import STALL_LIMIT, ProcessSection
from .signals import FAILED_END

if TYPE_CHECKING:
    from agenthost import Daemon

BEAT = 0.25
NAMED_AFTER = 1.0
REARMED_EVERY = 5.0
PAUSE = 30.0
"""A process may be stopped (SIGSTOP) so long without being ended when it goes on: the
timer in C counts the time that passes, not the time the process runs."""
UNKNOWN = "unknown"

_log = logging.getLogger("agenthost.cli.watchdog")


@dataclass(frozen=True, slots=True)
class Standstill:
    """A stall under way: whose code, and where in it."""

    plugin: str
    where: str


HELD = Standstill(UNKNOWN, "a C function that held the interpreter")
STARVED = Standstill(UNKNOWN, "no code: it waits for the processor")


class Watchdog:
    """Watches the loop of one daemon.

    Args:
        daemon: Whose plugins are named and charged.
        incidents: Where a stall is noted before it can end the process.
        dump: The file that takes the stacks of a forced end.
    """

    def __init__(self, daemon: Daemon, incidents: Incidents, dump: Path) -> None:
        self._daemon = daemon
        self._incidents = incidents
        self._dump = _opened(dump)
        self._loop_thread = threading.get_ident()
        self._off = threading.Event()
        self._beats = 0
        self._beaten = time.monotonic()
        self._longest = 0.0
        self._armed = (0.0, 0.0)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch from now on; called in the loop's thread before the loop runs."""
        self._loop = loop
        faulthandler.enable(self._dump)
        self._beat()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._off.set()
        self._next.cancel()
        faulthandler.cancel_dump_traceback_later()

    @property
    def _limit(self) -> float:
        # Not there before the configuration is read, or while [plugins] has cli off.
        try:
            return self._daemon.settings(ProcessSection).stall_limit_secs
        except (AttributeError, PluginError):
            return STALL_LIMIT

    def _beat(self) -> None:
        now = time.monotonic()
        self._longest = max(self._longest, now - self._beaten)
        self._beaten = now
        self._beats += 1
        # Each arming starts a thread, so not with every beat.
        armed = (self._limit, now // REARMED_EVERY)
        if armed != self._armed:
            self._armed = armed
            limit = self._limit + REARMED_EVERY + PAUSE
            # A thread of C: it ends the process also while something holds the
            # interpreter's lock, when our own thread cannot run.
            faulthandler.dump_traceback_later(limit, exit=True, file=self._dump)
        self._next = self._loop.call_later(BEAT, self._beat)

    def _watch(self) -> None:
        beats, stood, current = self._beats, 0.0, None
        looked, used = time.monotonic(), time.process_time()
        while not self._off.wait(BEAT):
            now, cpu = time.monotonic(), time.process_time()
            stood += _ran(now - looked, cpu - used)
            looked, used = now, cpu
            if self._beats != beats:
                if stood >= NAMED_AFTER:
                    # We were kept from looking for so long, so it was held.
                    self._went_on(current or HELD)
                self._longest = 0.0
                beats, stood, current = self._beats, 0.0, None
            elif stood >= NAMED_AFTER and current in (None, STARVED):
                current = self._named()
            if stood >= self._limit:
                self._end(current)

    def _named(self) -> Standstill:
        # The only way to see what another thread is doing.
        frames = frames_of(sys._current_frames().get(self._loop_thread))  # noqa: SLF001
        files = files_of(frames)
        if not files or files[0] == selectors.__file__:
            return STARVED
        plugin = owner(places_of(self._daemon.plugins), files) or UNKNOWN
        found = Standstill(plugin, shown(frames[0]))
        # On disk before the end that it may come to: the next start reads it.
        self._incidents.note("stalled", sync=True, plugin=plugin, where=found.where)
        stack = "".join(traceback.format_stack(frames[0], MOST_FRAMES))
        _log.warning(
            "the event loop stands still, in %s (%s):\n%s", plugin, found.where, stack
        )
        return found

    def _went_on(self, stall: Standstill) -> None:
        seconds = self._longest
        if stall not in (HELD, STARVED):
            self._incidents.note("recovered")
        # A start that is slow, or a machine that is busy, is no fault that lasts.
        if not self._daemon.address or stall is STARVED:
            return
        _log.warning(
            "the event loop stood still for %.1f s, in %s (%s)",
            seconds,
            stall.plugin,
            stall.where,
        )
        charges = self._daemon.plugins.charges
        account = charges.of(stall.plugin)
        account.stalls += 1
        account.stalled += seconds
        account.stalled_in = stall.where
        charges.last_stall = time.time()

    def _end(self, stall: Standstill | None) -> None:
        plugin = stall.plugin if stall else UNKNOWN
        _log.critical(
            "the event loop stood still for %g s, in %s; the process ends",
            self._limit,
            plugin,
        )
        faulthandler.dump_traceback(all_threads=True)
        # The loop would have to run for any other end.
        os._exit(FAILED_END)


def _ran(passed: float, used: float) -> float:
    """How long the process ran, of the time that passed.

    One that was stopped, or that others kept from the processor, used little of it;
    then our own waits are all that counts.
    """
    return passed if used >= passed / 2 else min(passed, BEAT)


def _opened(dump: Path) -> int:
    try:
        return os.open(dump, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return sys.stderr.fileno()


def main_thread_files(dump: str) -> list[str]:
    """Read the source files of the main thread from a dump, innermost first.

    Dumps of ``faulthandler`` end with the main thread, unless one is named current.
    """
    current = dump.partition("Current thread")[2].partition("\n\n")[0]
    stack = current or dump.strip().rpartition("\n\n")[2]
    lines = (line.strip() for line in stack.splitlines())
    return [
        line.removeprefix('File "').partition('"')[0]
        for line in lines
        if line.startswith('File "')
    ]
