"""Search the web: ``web_search``, by one of several engines that have a key."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import UNTRUSTED, ConfigSection, Effect, ToolSpec, hookimpl

from .settings import WebSearchSection
from .tool import WebSearch, web_search


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read which engines there are keys for."""
    yield ConfigSection("web.search", WebSearchSection)


@hookimpl
def register_tool() -> Iterable[ToolSpec]:
    """Offer ``web_search``."""
    yield ToolSpec(
        "web_search",
        "Search the web; gives titles, addresses and excerpts of pages.",
        WebSearch,
        Effect.EXTERNAL,
        web_search,
        labels=UNTRUSTED,
        critical=("query",),
    )
