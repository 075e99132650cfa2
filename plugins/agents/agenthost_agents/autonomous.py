"""What a manifest says of an agent that crashes."""

from __future__ import annotations

from typing import Annotated

from agenthost import ManifestTable
from agenthost_toml.types import Table
from pydantic import Field


class Restarts(Table):
    """How often an agent is started again."""

    max_restarts: Annotated[int, Field(ge=0, le=100)] = Field(
        10,
        description="How often within an hour it is started again after a crash; the "
        "next suspends it.",
    )


RESTARTS = ManifestTable("autonomous", Restarts)
