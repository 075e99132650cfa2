"""The limits of background work."""

from __future__ import annotations

from typing import Annotated, Literal

from agenthost import Secret
from agenthost_toml.types import Names, Table
from pydantic import Field

MOST_AT_ONCE = 12
"""Each takes a place of the queue, and the runs it waits for need places too."""


class BackgroundSection(Table):
    """``[background]``: what triggers and schedules have done."""

    max_concurrent: Annotated[int, Field(ge=1, le=MOST_AT_ONCE)] = Field(
        5, description="Occasions that are done at once; more of them wait."
    )
    max_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        600.0,
        description="How long one may take; waiting for a person does not count.",
    )
    pause_after: Annotated[int, Field(ge=1, le=100)] = Field(
        3,
        description="Failures in a row over a bill or a provider's key after which a "
        "source is paused.",
    )
    over_allowance: Literal["ask", "refuse"] = Field(
        "ask",
        description="What becomes of what a source has no money left for: a person is "
        "asked for as much again, or it is refused.",
    )
    answer_seconds: Annotated[float, Field(gt=0, le=86_400)] = Field(
        43_200.0,
        description="How long a person has to say whether a source may spend more; no "
        "answer in time is a no.",
    )
    webhook_secret: Secret | None = Field(
        None,
        description="What webhooks are signed with; text, or `whsec_` and base64.",
    )
    webhook_allowed_hosts: Names = Field(
        (), description="Hosts of private networks that webhooks may reach."
    )
