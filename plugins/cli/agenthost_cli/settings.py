"""What the configuration says of the process."""

from __future__ import annotations

from typing import Annotated

from agenthost_toml.types import Table
from pydantic import Field

STALL_LIMIT = 120.0


class ProcessSection(Table):
    """``[process]``: the daemon as a process of the machine."""

    stall_limit_secs: Annotated[float, Field(ge=1, le=86_400)] = Field(
        STALL_LIMIT,
        description="Seconds that the event loop may stand still before it ends.",
    )
