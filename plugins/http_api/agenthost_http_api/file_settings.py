"""How much people may hand to an agent."""

from __future__ import annotations

from typing import Annotated, ClassVar

from agenthost_toml.types import Table
from pydantic import Field


class UploadsSection(Table):
    """``[uploads]``: files that people hand to agents."""

    read_at_use: ClassVar = True

    max_files: Annotated[int, Field(ge=0, le=100_000)] = Field(
        200, description="Files that an agent may have; 0 takes none."
    )
    max_bytes: Annotated[int, Field(ge=0, le=1 << 40)] = Field(
        256 * 1024 * 1024, description="Bytes of all files of an agent together."
    )
