"""How many schedules there may be, and what they may spend."""

from __future__ import annotations

from typing import Annotated

from agenthost_toml.types import Positive, Table
from pydantic import Field


class SchedulesSection(Table):
    """``[schedules]``: turns, workflows and events at times."""

    max: Positive = Field(500, description="Schedules that there may be.")
    max_per_agent: Positive = Field(
        10, description="Schedules that an agent may make for itself."
    )
    allowance_usd: Annotated[float, Field(gt=0, le=10_000)] = Field(
        0.5,
        description="US dollars a day that a schedule may spend which says nothing "
        "else, and all that an agent has made for itself together.",
    )
