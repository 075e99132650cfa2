"""The limits of turns."""

from __future__ import annotations

from typing import Annotated

from agenthost_toml.types import Table
from pydantic import Field


class TurnsSection(Table):
    """``[turns]``: limits of the turn engine."""

    max_iterations: Annotated[int, Field(ge=1, le=1_000)] = Field(
        50, description="Model calls that one turn may make."
    )
    max_concurrent: Annotated[int, Field(ge=1, le=100_000)] = Field(
        256, description="Turns that run at once; more of them wait."
    )
    max_seconds: Annotated[float, Field(ge=0, le=86_400)] = Field(
        0.0,
        description="How long a turn may run, 0 for ever; waiting for a person, for "
        "the session or for another agent does not count.",
    )
