"""A database that needs nothing done, which is the rule: found without SQLAlchemy."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from hashlib import sha256

from agenthost import SchemaSpec

from .damage import CLEAN

LAYOUT = "layout"
"""The mark of the schemas, and their versions, that were last brought up together."""
_MARKS = "SELECT name, value FROM store_marks"
_VERSIONS = "SELECT name, version FROM schema_versions"
_OPENED = "UPDATE store_marks SET value = 0 WHERE name = ?"


def take_up(database: sqlite3.Connection, schemas: Sequence[SchemaSpec]) -> bool:
    """Take up a database that was closed in order and has every schema's newest tables.

    False is no verdict: somebody has to look closer, at what stands in the way too.
    """
    wanted = {spec.name: len(spec.steps) for spec in schemas}
    try:
        marks = dict(database.execute(_MARKS).fetchall())
        present = dict(database.execute(_VERSIONS).fetchall())
        if not (
            marks.get(CLEAN) == 1
            # Whether schemas clash was looked at when they were brought up together.
            and marks.get(LAYOUT) == layout(schemas)
            and wanted.items() <= present.items()
        ):
            return False
        database.execute(_OPENED, (CLEAN,))
    except sqlite3.Error:
        return False
    return True


def layout(schemas: Sequence[SchemaSpec]) -> int:
    """Give the number that stands for these schemas in their versions."""
    named = sorted((spec.name, len(spec.steps)) for spec in schemas)
    return int.from_bytes(sha256(repr(named).encode()).digest()[:7])
