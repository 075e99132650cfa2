"""A named key, and how its row reads."""

from __future__ import annotations

import json

from agenthost import Row
from agenthost_values.value_class import value_class

from .scopes import Scope

UNREVOKED = "SELECT * FROM keys WHERE revoked_at IS NULL ORDER BY created_at, id"
NEWEST = "SELECT coalesce(max(revision), 0) AS revision FROM keys"
"""Texts, since a start reads them and imports no SQLAlchemy."""


@value_class
class Key:
    """A named key as it is kept; times in seconds since the epoch.

    ``owner`` is who made it, ``person`` the id of the person it stands for or "".
    """

    id: str
    name: str
    hash: str
    scopes: tuple[Scope, ...]
    person: str
    expires_at: float | None
    units_per_minute: int | None
    created_at: float
    last_used_at: float | None = None
    revoked_at: float | None = None
    revision: int = 0
    owner: str = ""


def key_of(row: Row) -> Key:
    """Read a key from its row."""
    return Key(
        id=row["id"],
        name=row["name"],
        hash=row["hash"],
        scopes=tuple(json.loads(row["scopes"])),
        person=row["person"],
        expires_at=row["expires_at"],
        units_per_minute=row["units_per_minute"],
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
        revoked_at=row["revoked_at"],
        revision=row["revision"],
        owner=row["owner"],
    )
