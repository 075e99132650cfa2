"""``[triggers]``: how often one fires, unless it says so itself."""

from __future__ import annotations

from pydantic import BaseModel, Field

from .trigger import COOLDOWN, LONGEST_COOLDOWN


class TriggersSection(BaseModel, defer_build=True):
    """``[triggers]``: how often a trigger fires, unless it says so itself."""

    cooldown_secs: float = Field(
        COOLDOWN,
        ge=0,
        le=LONGEST_COOLDOWN,
        description="Seconds for which a trigger rests for a subject it has fired for.",
    )
