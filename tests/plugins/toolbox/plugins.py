"""Plugins that a test makes of tools, of a source of tools, or of guards."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from agenthost import (
    Guard,
    Host,
    SecuritySystem,
    ToolSource,
    ToolSpec,
    Verdict,
    hookimpl,
)


def offering(*specs: ToolSpec, name: str = "offering") -> Any:
    """Make a plugin that offers these tools for as long as it lives."""

    @hookimpl
    def register_tool() -> Iterable[ToolSpec]:
        return specs

    return SimpleNamespace(__name__=name, register_tool=register_tool)


def sourcing(*sources: ToolSource, name: str = "sourcing") -> Any:
    """Make a plugin with these sources of tools."""

    @hookimpl
    def register_tool_source() -> Iterable[ToolSource]:
        return sources

    return SimpleNamespace(__name__=name, register_tool_source=register_tool_source)


def guarding(guard: Callable[[Any], Verdict]) -> Any:
    """Make a plugin whose guard reads the results of tools."""
    guards: Mapping[Guard, Any] = {Guard.TOOL_RESULT: guard}

    @hookimpl
    def security_system() -> SecuritySystem:
        return SecuritySystem("reader", guards, lambda: None)

    return SimpleNamespace(__name__="reader", security_system=security_system)


class Source(ToolSource):
    """A source that a test holds in its hand.

    ``offers`` is its snapshot; ``fails`` is raised instead, ``hangs`` keeps it waiting.
    """

    def __init__(self, name: str, *offers: ToolSpec) -> None:
        self.name = name
        self.offers: Sequence[Any] = offers
        self.fails: BaseException | None = None
        self.hangs: threading.Event | None = None
        self.reason = "its server has gone"
        self.changed: Callable[[], object] = lambda: None
        self.asked = 0
        self.stopped = False

    async def start(self, host: Host, changed: Callable[[], object]) -> None:
        self.changed = changed

    def snapshot(self) -> Iterable[ToolSpec]:
        self.asked += 1
        if self.hangs is not None:
            self.hangs.wait(30)
        if self.fails is not None:
            raise self.fails
        return self.offers

    def gone(self, tool: str) -> str:
        return f"{tool}: {self.reason}"

    async def stop(self) -> None:
        self.stopped = True

    def now_offers(self, *offers: Any) -> None:
        """Offer something else, and say so."""
        self.offers = offers
        self.changed()
