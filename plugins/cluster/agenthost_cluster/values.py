"""How values travel: numbers and truth as SQLite has them, which the rows rely on."""

from __future__ import annotations

from typing import Any

from psycopg import BaseConnection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader


class Truth(Dumper):
    """True and False as 1 and 0, which PostgreSQL takes for a number or for itself."""

    def dump(self, obj: Any) -> bytes:
        """Give 1 or 0."""
        return b"1" if obj else b"0"


class Number(Loader):
    """What PostgreSQL sums up, which it calls numeric, as a plain number."""

    def load(self, data: Buffer) -> int | float:
        """Give an integer, unless there is a fraction."""
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


def settle(connection: BaseConnection[Any]) -> None:
    """Let a connection take and give values so."""
    connection.adapters.register_dumper(bool, Truth)
    connection.adapters.register_loader("numeric", Number)
