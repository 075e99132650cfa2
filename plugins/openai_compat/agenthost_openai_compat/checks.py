"""Plain checks of what a request brings, each naming the field."""

from __future__ import annotations

from typing import Any, TypeVar

from agenthost import InvalidInput

T = TypeVar("T")
_WORDS: dict[type, str] = {str: "a text", dict: "an object", list: "an array"}


def taken(value: Any, kind: type[T], place: str) -> T:
    """Take a value of this type.

    Raises:
        InvalidInput: It is none, or not there.
    """
    if not isinstance(value, kind):
        raise InvalidInput(place, f"must be {_WORDS[kind]}")
    return value


def filled(value: Any, place: str) -> str:
    """Take a text that says something.

    Raises:
        InvalidInput: It is none, or empty.
    """
    if not isinstance(value, str) or not value:
        raise InvalidInput(place, "must be a text, and not empty")
    return value
