"""What runs the tool calls of a turn: checked, guarded, told to the journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    Backend,
    Host,
    ManifestTable,
    Observers,
    ServiceSpec,
    Toolbox,
    ToolsBackend,
    hookimpl,
)


def open_toolbox(host: Host, observers: Observers) -> Toolbox:
    """Run the tools of the plugins of this daemon."""
    from .toolbox import GuardedToolbox

    return GuardedToolbox(host, observers)


async def bring_tools(host: Host) -> None:
    """Make the tools ready, where this is what runs their calls."""
    from .toolbox import GuardedToolbox

    if isinstance(host.toolbox, GuardedToolbox):
        await host.toolbox.start()


async def leave_tools(host: Host) -> None:
    """Follow no source any more."""
    from .toolbox import GuardedToolbox

    if isinstance(host.toolbox, GuardedToolbox):
        await host.toolbox.stop()


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer what runs tool calls."""
    yield ToolsBackend("guarded", open_toolbox)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read how often an agent may call tools."""
    from .manifest import PACE

    yield PACE


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer what brings the tools, and those of sources as they change."""
    yield ServiceSpec("tools", bring_tools, leave_tools)
