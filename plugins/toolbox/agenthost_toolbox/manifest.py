"""What the toolbox reads of an agent's manifest."""

from __future__ import annotations

from agenthost import ManifestTable
from agenthost_toml.types import Count, Table
from pydantic import Field


class CallLimit(Table):
    """How often an agent may call tools."""

    max_tool_calls_per_minute: Count = Field(
        60, description="Tool calls it may begin within a minute; 0 is unlimited."
    )


PACE = ManifestTable("resources", CallLimit)
