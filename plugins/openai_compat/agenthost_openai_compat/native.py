"""What only one vendor's wire has: for a model itself, if it speaks that wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from agenthost import InvalidInput, JsonObject
from pydantic import BaseModel, Field

TIERS = frozenset({"auto", "default", "flex", "standard_only"})
"""What is served for no more than the list price."""
Penalty = Annotated[float, Field(ge=-2, le=2)]
Word = Annotated[str, Field(pattern="^[a-z_]{1,32}$")]
Bias = Annotated[
    dict[
        Annotated[str, Field(pattern="^[0-9]{1,9}$")],
        Annotated[float, Field(ge=-100, le=100)],
    ],
    Field(max_length=1_024),
]
Nonnegative = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Candidates = Annotated[int, Field(ge=-1, le=10_000_000)]


def native_of(
    body: BaseModel, dialect: str, names: Iterable[str]
) -> Mapping[str, JsonObject] | None:
    """Gather what of these a request has, for the dialect; None for nothing.

    Only numbers, single words and the short texts of ``metadata`` are gathered: no
    guard of what is sent looks at them.

    Raises:
        InvalidInput: The service is to cost more than budgets count on.
    """
    values = {name: getattr(body, name) for name in names}
    check_tier(values.get("service_tier"))
    found: dict[str, Any] = {n: v for n, v in values.items() if v is not None}
    return {dialect: found} if found else None


def check_tier(tier: str | None) -> None:
    """Refuse a service that costs more than budgets count on.

    Raises:
        InvalidInput: It does, or nobody knows what it costs.
    """
    if tier is not None and tier not in TIERS:
        known = ", ".join(sorted(TIERS))
        problem = f"must be one of {known}: what costs more than the list is not served"
        raise InvalidInput("service_tier", problem)
