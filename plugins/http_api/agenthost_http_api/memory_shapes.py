"""What a search of memory asks and answers."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from .shapes import Body


class SearchMemory(Body):
    """What is looked for, and whose it is."""

    agent: str = Field(description="Id or name of an agent", max_length=256)
    q: str = Field(
        description="Words that all occur",
        min_length=1,
        max_length=1_000,
        pattern=r"\S",
    )


class MemoryFound(TypedDict):
    """A value or a message that a search has found; each has its own of the ids."""

    kind: Literal["memory", "message"]
    text: str
    at: float
    labels: list[str]
    key: NotRequired[str]
    session_id: NotRequired[str]
    turn_id: NotRequired[str | None]
    role: NotRequired[str]


class MemorySearched(TypedDict):
    """``GET /api/memory/search``."""

    results: list[MemoryFound]
