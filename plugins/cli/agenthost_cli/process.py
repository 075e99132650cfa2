"""A daemon as a process: whatever its plugins do, it serves or it ends."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from agenthost import (
    AgentHostError,
    Config,
    ConfigError,
    Conflict,
    Daemon,
    describe,
)

from .blame import files_of, frames_of_traceback, owner, places_of, shown
from .caution import look_back
from .first_start import HINT, exposed, is_new
from .home import announce
from .incidents import Incidents
from .logs import TEXT
from .memory import Memory
from .signals import FAILED_END, Signals
from .watchdog import Watchdog

STOP_SECONDS = 55.0
REST_SECONDS = 1.0
LOOK_EVERY = 10.0
START_FAILED = 1
DUMP_FILE = "last_stack.txt"

_log = logging.getLogger("agenthost.cli.process")


class Process:
    """Runs one daemon, from its start to the end of its loop.

    Args:
        home: The daemon's home.
        settled: Called once it serves.
    """

    def __init__(self, home: Path, settled: Callable[[], None]) -> None:
        self._home = home
        self._settled = settled
        self._new = is_new(home)
        self._announced = ExitStack()
        self._incidents = Incidents(home)
        caution = look_back(self._incidents, home / DUMP_FILE)
        self._daemon = Daemon(home, left_out=caution.left_out)
        self._daemon.warnings.extend([*caution.warnings, *exposed(home)])
        self._watchdog = Watchdog(self._daemon, self._incidents, home / DUMP_FILE)
        self._signals = Signals(self._on_first_signal)
        self._loop = asyncio.new_event_loop()
        self._serving = False

    def log_format(self) -> str:
        """In which form the log is to be written, as far as is known."""
        config: Config | None = getattr(self._daemon, "config", None)
        return TEXT if config is None else config.log_format

    def run(self) -> int:
        """Serve until a signal, a request or a plugin ends it; return the exit code."""
        self._incidents.note("starting")
        asyncio.set_event_loop(self._loop)
        self._signals.listen()
        self._watchdog.start(self._loop)
        self._main = self._loop.create_task(self._serve())
        self._main.add_done_callback(lambda _: self._loop.stop())
        while not self._main.done():
            if self._pass() and not self._main.done():
                _log.critical("something stopped the event loop; ending")
                break
        code = self._code()
        self._signals.taken_up()
        if not self._ended_in_order():
            code = FAILED_END
        self._watchdog.stop()
        if code == 0:
            self._incidents.note("ended" if self._serving else "refused")
        return code

    def _pass(self) -> bool:
        """Run the loop; tell whether it was stopped, else something was thrown at it.

        SystemExit and KeyboardInterrupt leave a loop whoever raises them. No signal
        raises one here, so it was a plugin, in a task or a callback of its own: the
        loop has lost nothing but that, and can go on.
        """
        try:
            self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            self._charge(error)
            return False
        return True

    def _charge(self, error: BaseException) -> None:
        frames = frames_of_traceback(error.__traceback__)
        plugins = self._daemon.plugins
        key = owner(places_of(plugins), files_of(frames))
        where = shown(frames[0]) if frames else "nowhere"
        reason = f"it raised {describe(error)} in {where}"
        _log.error("the daemon was to be ended by %s: %s", key or "no plugin", reason)
        if key is not None:
            plugins.fail(key, reason)

    async def _serve(self) -> int:
        daemon = self._daemon
        try:
            await daemon.start()
            self._announced.callback(announce(self._home, daemon))
        except AgentHostError as error:
            if isinstance(error, ConfigError | Conflict):
                self._incidents.note("refused")
            _say(f"agenthost did not start: {error.message}")
            return START_FAILED
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a plugin may raise anything
            _log.exception("the start failed")
            _say(f"agenthost did not start: {describe(error)}")
            return START_FAILED
        places = places_of(daemon.plugins)
        ours = {s.key for s in daemon.plugins.states() if s.first_party}
        foreign = {place: key for place, key in places.items() if key not in ours}
        self._incidents.shorten()
        self._incidents.note("serving", places=foreign)
        logging.getLogger("agenthost").setLevel(daemon.config.log_level.upper())
        _greet(daemon)
        if self._new:
            _say(HINT)
        self._settled()
        self._serving = True
        memory = Memory()
        while not daemon.stop_requested.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await daemon.stop_requested.wait()
            if not daemon.turns.running:
                memory.give_back()
        return 0

    def _code(self) -> int:
        if not self._main.done():
            return FAILED_END
        if self._main.cancelled():
            # By a signal during the start; else a plugin cancelled every task.
            if self._daemon.stop_requested.is_set():
                return 0
            _log.critical("something cancelled every task; ending")
            return FAILED_END
        if error := self._main.exception():
            _log.critical("the daemon cannot go on", exc_info=error)
            return FAILED_END
        return self._main.result()

    def _ended_in_order(self) -> bool:
        """Take the daemon down, within limits; tell whether it went to the end."""
        ending = self._loop.create_task(self._end())
        ending.add_done_callback(lambda _: self._loop.stop())
        deadline = time.monotonic() + STOP_SECONDS
        self._loop.call_later(STOP_SECONDS, self._loop.stop)
        while not ending.done() and time.monotonic() < deadline:
            self._pass()
        if not ending.done():
            _log.critical("the end took longer than %g s; ending at once", STOP_SECONDS)
        return ending.done() and not ending.cancelled() and not ending.exception()

    async def _end(self) -> None:
        self._announced.close()
        await self._daemon.stop()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=REST_SECONDS)

    def _on_first_signal(self) -> None:
        # It comes from the thread of signals, and the loop may sleep.
        self._loop.call_soon_threadsafe(self._take_up_signal)

    def _take_up_signal(self) -> None:
        self._signals.taken_up()
        self._daemon.request_stop()
        if not self._serving:
            self._main.cancel()


def _greet(daemon: Daemon) -> None:
    for warning in daemon.warnings:
        _say(f"warning: {warning}")
    scheme = "https" if daemon.front.fingerprint else "http"
    _say(f"agenthost {daemon.version} serves at {scheme}://{daemon.address}/")
    # Its provider may be among what is left out; a warning above tells so.
    with suppress(AgentHostError):
        provider, model = daemon.models.names_of_default()
        _say(f"default model: {model} at {provider}")
    _say("next: open that address in a browser, or see README.md for curl")


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
