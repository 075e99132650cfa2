"""When a conversation is condensed."""

from __future__ import annotations

from typing import Annotated, ClassVar

from agenthost_toml.types import Positive, Table
from pydantic import Field, model_validator


class CompactionSection(Table):
    """``[compaction]``: when a session's older messages are summarised."""

    read_at_use: ClassVar = True

    threshold_messages: Positive = Field(
        80, description="Messages above which a session is condensed."
    )
    keep_recent: Positive = Field(
        20, description="Messages at the end that stay as they are."
    )
    threshold_ratio: Annotated[float, Field(gt=0, le=1)] = Field(
        0.7, description="The share of the model's window above which it is as well."
    )

    @model_validator(mode="after")
    def _keeps_less_than_all(self) -> CompactionSection:
        if self.keep_recent >= self.threshold_messages:
            raise ValueError("keep_recent must be smaller than threshold_messages")
        return self
