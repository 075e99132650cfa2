"""What the configuration says of desktop capabilities."""

from __future__ import annotations

from typing import Literal

from agenthost_toml.types import Table
from pydantic import Field


class DesktopSection(Table):
    """``[desktop_shell]``: the served folder and the IPC bridge."""

    mode: Literal["strict", "lenient"] = Field(
        "strict",
        description="How the files in ``capabilities/`` of the home are read: strict, "
        "or lenient as the reference runtime reads them.",
    )
    record: bool = Field(
        default=True,
        description="Record what the IPC bridge decides, for "
        "``agenthost capability suggest``.",
    )
