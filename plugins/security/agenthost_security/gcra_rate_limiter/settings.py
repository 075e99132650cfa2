"""What the configuration says of the limiter."""

from __future__ import annotations

from typing import Annotated

from agenthost_toml.types import Count, Positive, Table
from pydantic import AfterValidator, Field

from .costs import compiled


def _readable(costs: dict[str, int]) -> dict[str, int]:
    compiled(costs)
    return costs


class RateLimit(Table):
    """``[rate_limit]``: how much a client may ask of one daemon."""

    enabled: bool = Field(
        default=True, description="Whether clients are limited at all."
    )
    units_per_minute: Positive = Field(
        500,
        description="Units that each client address gets back in a minute; an IPv6 "
        "client counts by its /64.",
    )
    burst: Positive = Field(500, description="Units it may spend at once.")
    costs: Annotated[dict[str, Count], AfterValidator(_readable)] = Field(
        default_factory=dict,
        description="Units of requests, for those that are to cost another number "
        'than they do, such as `"POST /api/agents" = 20`; `*` stands for one segment '
        "of a path, `**` for what is left of it. The first that fits counts. "
        "`LOGIN /login` is a wrong key, `MESSAGE /ws` a message on a WebSocket.",
    )
