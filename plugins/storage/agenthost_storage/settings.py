"""What the files of agents may take."""

from __future__ import annotations

from agenthost_toml.types import Table
from pydantic import Field

from .files import WORKSPACE_BYTES


class FilesSection(Table):
    """``[files]``: the agents' workspaces."""

    workspace_bytes: int = Field(
        WORKSPACE_BYTES,
        ge=2**20,
        description="Bytes that an agent's workspace may hold; each file counts as "
        "4096 or more. What is over it is refused as a full disk is.",
    )
