"""Keys that do not show themselves."""

from __future__ import annotations

from typing import Any, NoReturn

from agenthost_toml.types import trimmed_line
from pydantic_core import core_schema

HIDDEN = "***"


class Secret:
    """A key: never in a repr, a format, a pickle or a comparison.

    A field of a pydantic model may have this type. It is written as one line of text,
    and dumps as ``***``.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Hand out the value, for the header that needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        hide = core_schema.plain_serializer_function_ser_schema(lambda _: HIDDEN)
        return core_schema.no_info_plain_validator_function(cls._of, serialization=hide)

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: Any) -> dict[str, Any]:
        return {"type": "string", "format": "password", "writeOnly": True}

    @classmethod
    def _of(cls, value: object) -> Secret:
        if isinstance(value, Secret):
            return value
        if not (line := trimmed_line(value)):
            raise ValueError("is empty; fill it in, or leave the key out")
        return cls(line)
