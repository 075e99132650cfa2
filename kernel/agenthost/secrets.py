"""Keys that do not show themselves."""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """A key: never in a repr, a format, a pickle or a comparison."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Hand out the value, for the header that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")
