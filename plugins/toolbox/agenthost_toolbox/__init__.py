"""What runs the tool calls of a turn: checked, guarded, told to the journal."""

from __future__ import annotations

from collections.abc import Iterable

from agenthost import (
    Backend,
    Host,
    Observers,
    Registry,
    Toolbox,
    ToolsBackend,
    hookimpl,
)


def open_toolbox(host: Host, registry: Registry, observers: Observers) -> Toolbox:
    """Run the tools of the plugins of this daemon."""
    from .toolbox import GuardedToolbox

    return GuardedToolbox(host, registry, observers)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer what runs tool calls."""
    yield ToolsBackend("guarded", open_toolbox)
