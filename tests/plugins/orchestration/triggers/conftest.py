"""A daemon with triggers."""

from __future__ import annotations

import pytest
from agenthost.testing import Daemons

from .stage import Stage, stage_at


@pytest.fixture
async def stage(daemons: Daemons) -> Stage:
    return await stage_at(daemons)
