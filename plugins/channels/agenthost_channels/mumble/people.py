"""Who is on the server, and how they are known when they come again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..contract import Sender


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who is connected; the session is another one next time."""

    session: int
    name: str = ""
    user: int | None = None
    hash: str = ""
    channel: int = 0

    @property
    def id(self) -> str:
        """Give what stays: the registration, the certificate, or only a name."""
        if self.user is not None:
            return f"user:{self.user}"
        return f"cert:{self.hash}" if self.hash else f"name:{self.name}"

    def changed(self, state: Any) -> Person:
        """Give what a message makes of it: only what is in it has changed."""
        fields = {"name": "name", "user_id": "user", "hash": "hash"}
        found = {
            ours: getattr(state, theirs)
            for theirs, ours in {**fields, "channel_id": "channel"}.items()
            if state.HasField(theirs)
        }
        return replace(self, **found)

    def as_sender(self) -> Sender:
        """Give it as who says something."""
        return Sender(self.id, self.name)
