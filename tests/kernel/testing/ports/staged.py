"""Broken backends of ports that open with a host, each held against one promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agenthost.testing.ports import stage as waiting
from agenthost.testing.ports.stage import Stage

from .finding import finds

SOON = 2.0
"""How long is waited for what a broken one never does."""


async def stage_finds(test: Callable[..., Any], stage: Stage, *more: object) -> None:
    """Demand that the test fails for what serves the stage."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(waiting, "PATIENCE", SOON)
            await finds(test, stage, *more)
    finally:
        stage.close()


def name_of(given: object) -> str:
    """Name what is broken, or what finds it, in the list of tests."""
    return getattr(given, "__name__", "")
