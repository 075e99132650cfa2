"""The settings of workflows."""

from __future__ import annotations

from typing import Annotated

from agenthost_toml.types import Table
from pydantic import Field


class WorkflowsSection(Table):
    """``[workflows]``: limits of workflows."""

    max_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        3_600.0,
        description="How long a run may take in all; waiting for a person, and the "
        "time when no daemon runs, do not count.",
    )
