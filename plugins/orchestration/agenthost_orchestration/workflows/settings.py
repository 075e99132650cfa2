"""The settings of workflows."""

from __future__ import annotations

from typing import Annotated, Literal

from agenthost_toml.types import Table
from pydantic import Field


class WorkflowsSection(Table):
    """``[workflows]``: limits of workflows."""

    max_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        3_600.0,
        description="How long a run may take in all; waiting for a person, and the "
        "time when no daemon runs, do not count.",
    )
    over_cost: Literal["ask", "refuse"] = Field(
        "ask",
        description="What becomes of a run that has spent its `max_cost_usd`: a person "
        "is asked for as much again, or it fails.",
    )
    answer_seconds: Annotated[float, Field(gt=0, le=2_592_000)] = Field(
        43_200.0,
        description="How long a person has to say whether a run may spend more; no "
        "answer in time is a no.",
    )
