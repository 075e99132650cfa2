"""Sources of tools, each followed by a task of its own while the daemon runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice

from agenthost import (
    Host,
    PluginError,
    ToolSource,
    ToolSpec,
    describe,
    guarded_each,
    within,
)

from .ready import ReadyTool, made_ready
from .table import Offer

log = logging.getLogger(__name__)

FIRST_SECONDS = 5.0
"""So long a start waits for all sources; who takes longer brings its tools later."""
START_SECONDS = 30.0
ASKED_SECONDS = 10.0
STOP_SECONDS = 5.0
PAUSE = 0.1
MOST_TOOLS = 1_000
MOST_GONE = 1_000
REASON_CHARACTERS = 300


class Followed:
    """A source, and what it offered when it was asked last.

    Args:
        host: The daemon.
        plugin: The key of the source's plugin.
        source: The source.
        renew: Called when there is another offer.
    """

    def __init__(
        self, host: Host, plugin: str, source: ToolSource, renew: Callable[[], object]
    ) -> None:
        self.name = f"tool source {source.name} of {plugin}"
        self.offer = Offer(self.name, (), {})
        self.asked = asyncio.Event()
        self._host = host
        self._plugin = plugin
        self._source = source
        self._renew = renew
        self._changed = asyncio.Event()
        self._told = False
        self._answered = False
        self._problems: frozenset[str] = frozenset()

    async def follow(self) -> None:
        """Start the source and ask it whenever it says that it has changed."""
        loop = asyncio.get_running_loop()
        try:
            starting = self._source.start(self._host, partial(self._tell, loop))
            await within(START_SECONDS, self.name, starting)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            log.warning("%s did not start: %s", self.name, describe(error))
            self.asked.set()
            return
        while await self._ask():
            self.asked.set()
            # A source that flaps is asked ten times a second, no more.
            await self._host.clock.sleep(PAUSE)
            await self._changed.wait()
        self.asked.set()

    async def stop(self) -> None:
        """Let the source end; it has so long."""
        try:
            await within(STOP_SECONDS, self.name, self._source.stop())
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            log.warning("%s did not stop: %s", self.name, describe(error))

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hear from any thread that there is another snapshot."""
        if self._told:
            return
        self._told = True
        # After the end there is no loop to tell, and nobody to hear.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._changed.set)

    async def _ask(self) -> bool:
        """Take a snapshot; False when the source never ends, and is asked no more."""
        self._changed.clear()
        self._told = self._answered = False
        timed = self._host.plugins.charges.timed(self._plugin)
        ((offer, reason),) = await guarded_each(
            [(self.name, timed(self._snapshot))], ASKED_SECONDS
        )
        if offer is not None:
            self.offer, problems = offer
            for problem in problems - self._problems:
                log.warning("%s", problem)
            self._problems = problems
            self._renew()
            return True
        log.warning("%s keeps the tools it had: %s", self.name, reason)
        if not self._answered:
            log.error("%s is not asked again: it did not answer", self.name)
        return self._answered

    def _snapshot(self) -> tuple[Offer, frozenset[str]]:
        """Ask the source, in a thread of its own."""
        try:
            specs = list(islice(self._source.snapshot(), MOST_TOOLS + 1))
            if len(specs) > MOST_TOOLS:
                raise PluginError(f"it offers more than {MOST_TOOLS} tools")
            kinds = {type(s).__name__ for s in specs if not isinstance(s, ToolSpec)}  # type: ignore[redundant-expr]  # reason: a plugin may be untyped
            if kinds:
                raise PluginError(f"it offers {min(kinds)}, which is no ToolSpec")
            ready, problems = made_ready(self._plugin, specs, self.offer.tools)
            return Offer(self.name, ready, self._gone(ready)), frozenset(problems)
        finally:
            self._answered = True

    def _gone(self, ready: Iterable[ReadyTool]) -> dict[str, str]:
        """Why each tool is gone that was there once; the newest of very many."""
        here = {name for tool in ready for name in tool.spec.names}
        before = {name for tool in self.offer.tools for name in tool.spec.names}
        gone = {n: why for n, why in self.offer.gone.items() if n not in here}
        for name in sorted(before - here):
            reason = " ".join(str(self._source.gone(name)).split())
            gone[name] = reason[:REASON_CHARACTERS]
        return dict(list(gone.items())[-MOST_GONE:])


class Sources:
    """All sources of a daemon."""

    def __init__(
        self,
        host: Host,
        sources: Iterable[tuple[str, ToolSource]],
        renew: Callable[[], object],
    ) -> None:
        self._followed = [Followed(host, key, each, renew) for key, each in sources]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def offers(self) -> list[Offer]:
        """What they offer now, in the order of their plugins."""
        return [each.offer for each in self._followed]

    async def start(self) -> None:
        """Follow them; who answers soon has its tools there before the first turn."""
        self._tasks = [asyncio.create_task(each.follow()) for each in self._followed]
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                for each in self._followed:
                    await each.asked.wait()
        except TimeoutError:
            late = [each.name for each in self._followed if not each.asked.is_set()]
            log.warning("still waiting for %s", ", ".join(late))

    async def stop(self) -> None:
        """Follow them no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(each.stop() for each in self._followed))
