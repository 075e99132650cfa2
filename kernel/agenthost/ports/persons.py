"""The part of RECORDS about people: who is behind what somebody comes with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agenthost_values.value_class import value_class


@value_class
class Person:
    """Somebody who uses the daemon, by whatever way.

    ``role`` is the operator's own word and grants nothing.
    """

    id: str
    name: str
    role: str


class Persons(Protocol):
    """The people behind principals.

    What somebody comes with (a login, a channel's user, a peer) is linked to a person
    by the kind of principal it makes and what the outside knows it by.
    """

    async def add(self, name: str, role: str) -> Person:
        """Add a person; Conflict when the name is taken in any case."""

    async def get(self, person_id: str) -> Person:
        """Read a person, or raise NotFound."""

    async def list(self) -> Sequence[Person]:
        """All of them, by name."""

    async def change(self, person_id: str, name: str, role: str) -> Person:
        """Rename a person; NotFound, or Conflict when the name is taken."""

    async def delete(self, person_id: str) -> None:
        """Forget a person and all links to it, or raise NotFound."""

    async def link(self, kind: str, external: str, person_id: str) -> None:
        """Say who is behind it from now on; NotFound when there is no such person."""

    async def unlink(self, kind: str, external: str, person_id: str) -> None:
        """Say that this person is behind it no more; NotFound when they were not."""

    async def links(self, person_id: str) -> Sequence[tuple[str, str]]:
        """What a person comes with: kind and external, in order; none of an unknown."""

    async def find(self, kind: str, external: str) -> Person | None:
        """Tell who is behind it, None when nobody said."""
