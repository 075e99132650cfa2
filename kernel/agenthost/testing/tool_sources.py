"""What every source of tools promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from ..host import Host
from ..plugins.calls import guarded_each
from ..plugins.sources import ToolSource
from ..plugins.specs import ToolSpec

_SECONDS = 5.0


class ToolSourceContract:
    """A source of tools keeps every promise of one.

    A subclass makes the source, and says how to make it change. Override the fixture
    ``host`` where the source uses the daemon.

    Example:
        ::

            class TestWeather(ToolSourceContract):
                def source(self) -> ToolSource:
                    return Weather(FakeServer())

                async def change(self, source: ToolSource) -> None:
                    source.server.remove("forecast")
    """

    def source(self) -> ToolSource:
        """A source that has not been started."""
        raise NotImplementedError

    async def change(self, source: ToolSource) -> None:
        """Take at least one of its tools away."""
        raise NotImplementedError

    @pytest.fixture
    def host(self) -> Host:
        """The daemon; a source that uses none needs none."""
        return cast("Host", None)

    async def test_it_offers_tools_of_different_names(self, host: Host) -> None:
        """What it offers are tools, each of its own name."""
        source = self.source()
        assert source.name
        async with _started(source, host) as changes:
            await changes.settled()
            specs = await snapshot(source)
        names = [name for spec in specs for name in spec.names]
        assert names
        assert len(names) == len(set(names))
        assert all(isinstance(spec, ToolSpec) for spec in specs)

    async def test_it_says_when_it_has_changed_and_why(self, host: Host) -> None:
        """A change is told; who has gone has a reason, in a line of words."""
        source = self.source()
        async with _started(source, host) as changes:
            await changes.settled()
            before = {spec.name for spec in await snapshot(source)}
            changes.heard.clear()
            await self.change(source)
            async with asyncio.timeout(_SECONDS):
                await changes.heard.wait()
            gone = before - {spec.name for spec in await snapshot(source)}
            assert gone, "change() takes a tool away"
            for name in gone:
                assert 0 < len(source.gone(name)) <= 300

    async def test_it_can_be_asked_before_it_starts_and_after_it_stops(
        self, host: Host
    ) -> None:
        """No moment is a wrong one to be asked, or to stop."""
        source = self.source()
        await snapshot(source)
        async with _started(source, host):
            pass
        await snapshot(source)
        async with asyncio.timeout(_SECONDS):
            await source.stop()


async def snapshot(source: ToolSource) -> Sequence[ToolSpec]:
    """Ask a source as the daemon does: in a thread, and not for ever.

    Raises:
        AssertionError: It raises, or does not answer.
    """
    ((specs, reason),) = await guarded_each(
        [(source.name, lambda: list(source.snapshot()))], _SECONDS
    )
    assert specs is not None, reason
    return specs


class _started:  # noqa: N801 - used as a function
    """A source that runs within the block."""

    def __init__(self, source: ToolSource, host: Host) -> None:
        self.heard = asyncio.Event()
        self._source = source
        self._host = host

    async def __aenter__(self) -> _started:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_SECONDS):
            await self._source.start(
                self._host, lambda: loop.call_soon_threadsafe(self.heard.set)
            )
        return self

    async def __aexit__(self, *_: Any) -> None:
        async with asyncio.timeout(_SECONDS):
            await self._source.stop()

    async def settled(self) -> None:
        """Wait until it offers something, asking again whenever it has changed."""
        async with asyncio.timeout(_SECONDS):
            self.heard.clear()
            while not await snapshot(self._source):
                await self.heard.wait()
                self.heard.clear()
