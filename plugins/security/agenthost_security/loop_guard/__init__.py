"""Stop a turn that calls the same tools again and again and learns nothing from it.

First the model is warned, behind a result; then the call is refused, with the reason
``loop_detected``; a turn that goes on all the same ends with that code. What is known
of a turn is made of its calls and results: one that goes on after a restart is judged
by what stands in the journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    ConfigSection,
    Guard,
    Host,
    ManifestTable,
    SecuritySystem,
    ServiceSpec,
    hookimpl,
)


def self_test() -> None:
    """Go round in a circle and be stopped; work honestly and be left alone.

    Raises:
        RuntimeError: One of them went the other way.
    """
    from .proof import prove

    prove()


async def start(host: Host) -> None:
    """Hand the daemon's settings to the guards that its systems were made with."""
    from .watch import Loops

    for _, system in host.registry.offered(SecuritySystem):
        loops = getattr(system.guards.get(Guard.TOOL_CALL.name), "__self__", None)
        if isinstance(loops, Loops):
            loops.begin(host)


async def stop(_: Host) -> None:
    """Nothing is left to end."""


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read when a turn is in a loop."""
    from .settings import LoopGuardSection

    yield ConfigSection("loop_guard", LoopGuardSection)


@hookimpl
def register_manifest() -> Iterable[ManifestTable[Any]]:
    """Read it of one agent."""
    from .settings import LOOPS

    yield LOOPS


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Begin with the daemon's settings."""
    yield ServiceSpec("loop_guard", start, stop)


@hookimpl
def security_system() -> SecuritySystem:
    """Offer the loop guard."""
    from .watch import Loops

    loops = Loops()
    return SecuritySystem(
        "loop_guard",
        {
            Guard.TOOL_CALL: loops.called,
            Guard.TOOL_RESULT: loops.answered,
            Guard.HISTORY: loops.went_on,
        },
        self_test,
    )
