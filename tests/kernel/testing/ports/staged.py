"""Broken backends of ports that open with a host, each held against one promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agenthost.testing.ports.stage import Stage

from .finding import finds


async def stage_finds(test: Callable[..., Any], stage: Stage, *more: object) -> None:
    """Demand that the test fails for what serves the stage."""
    try:
        await finds(test, stage, *more)
    finally:
        stage.close()


def name_of(given: object) -> str:
    """Name what is broken, or what finds it, in the list of tests."""
    return getattr(given, "__name__", "")
