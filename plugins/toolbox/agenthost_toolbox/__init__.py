"""What runs the tool calls of a turn: checked, guarded, told to the journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    Backend,
    Host,
    ManifestTable,
    Observers,
    Toolbox,
    ToolsBackend,
    hookimpl,
)


def open_toolbox(host: Host, observers: Observers) -> Toolbox:
    """Run the tools of the plugins of this daemon."""
    from .toolbox import GuardedToolbox

    return GuardedToolbox(host, observers)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer what runs tool calls."""
    yield ToolsBackend("guarded", open_toolbox)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read how often an agent may call tools."""
    from .manifest import PACE

    yield PACE
