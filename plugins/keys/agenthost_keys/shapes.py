"""The JSON shapes of keys and persons: requests as models, answers as typed dicts."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
)
from typing_extensions import TypedDict

from .scopes import Scope

KeyName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
]


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable text on one line")
    return text


Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
    AfterValidator(_printable),
]


class Body(BaseModel, defer_build=True):
    """What a request brings; what is misspelt is refused, since it may be a limit."""

    model_config = ConfigDict(extra="forbid")


class CreateKey(Body):
    """``POST /api/keys``."""

    name: KeyName = Field(description="Unique among the keys that hold")
    scopes: list[Scope] = Field(min_length=1, max_length=4)
    expires_at: AwareDatetime | None = Field(
        None, description="ISO 8601 with a time zone; never, when it is left out"
    )
    units_per_minute: int | None = Field(None, ge=1, le=1_000_000, strict=True)
    person: UUID | None = Field(None, description="The id of the person it stands for")


class CreatedKey(TypedDict):
    """Answer of ``POST /api/keys``: ``key`` is shown this once."""

    id: str
    name: str
    key: str


Status = Literal["active", "expired", "revoked"]


class KeyItem(TypedDict):
    """A key in the list, without its secret."""

    id: str
    name: str
    status: Status
    scopes: list[Scope]
    person: str | None
    units_per_minute: int | None
    created_at: str
    created_by: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None


class KeyList(TypedDict):
    """Answer of ``GET /api/keys``."""

    keys: list[KeyItem]
    total: int


class Gone(TypedDict):
    """Answer of ``DELETE``: what became of which."""

    status: str
    id: str


class CreatePerson(Body):
    """``POST /api/persons``."""

    name: Words
    role: Words = Field("member", description="A word of your own; grants nothing")


class ChangePerson(Body):
    """``PATCH /api/persons/{id}``; what is left out stays."""

    name: Words | None = None
    role: Words | None = None


class PersonItem(TypedDict):
    """A person."""

    id: str
    name: str
    role: str


class PersonList(TypedDict):
    """Answer of ``GET /api/persons``."""

    persons: list[PersonItem]
    total: int


class LinkItem(TypedDict):
    """What somebody comes with: a kind of principal, and its name outside."""

    kind: str
    external: str


class LinkList(TypedDict):
    """Answer of ``GET /api/persons/{id}/links``."""

    links: list[LinkItem]
    total: int
