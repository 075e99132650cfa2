"""The JSON shapes of a chat command given outside a chat."""

from __future__ import annotations

from pydantic import Field
from typing_extensions import TypedDict

from .shapes import Body

LENGTH = 64 * 1024


class GiveCommand(Body):
    """``POST /api/agents/{id}/command``."""

    command: str = Field(
        pattern="^/", max_length=LENGTH, description="As it is typed in a chat"
    )


class CommandAnswer(TypedDict):
    """What a chat command says."""

    response: str
