"""What is said of each channel, whatever its service."""

from __future__ import annotations

from typing import Any, Literal

from agenthost_toml.types import Positive, Table
from pydantic import ConfigDict, Field, RootModel


class ChannelSection(Table, extra="allow"):
    """``[channels.<id>]``; its other keys are those of the channel itself."""

    __pydantic_extra__: dict[str, Any]

    enabled: bool = Field(default=True, description="Whether it is connected.")
    agent: str = Field(description="The agent that answers, by name or id.")
    allow_from: list[str] = Field(
        default_factory=list,
        description="Who may speak: the service's ids of persons. Nobody else is "
        "answered, nor kept.",
    )
    group_policy: Literal["ignore", "mention_only", "all"] = Field(
        "mention_only",
        description="What is answered in a group: nothing, what speaks to the agent, "
        "or all that those in `allow_from` say.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list, description="Hosts of the service that may be local."
    )
    webhooks_per_minute: Positive = Field(
        3000,
        description="Signed webhooks that are taken in a minute, and at once; further "
        "ones are answered 429, and the service sends them again.",
    )


class Channels(RootModel):  # type: ignore[type-arg]  # reason: with one, it is built at import
    """``[channels.<id>]``: the channels that are connected, by id."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    root: dict[str, ChannelSection] = Field(default_factory=dict)
