"""What the way out reads of an agent's manifest."""

from __future__ import annotations

from agenthost import ManifestTable
from agenthost_toml.types import Count, Table
from pydantic import Field


class Transfers(Table):
    """How much an agent may transfer."""

    max_network_bytes_per_hour: Count = Field(
        104_857_600,
        description="Bytes that its tools may send and receive within an hour; 0 is "
        "unlimited. Calls of models do not count.",
    )


TRAFFIC = ManifestTable("resources", Transfers)
