"""Values by key, in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agenthost_chat.chat import Json

from ....context import Context
from ....errors import InvalidInput, NotFound, TooLarge
from ....ports.events import Keep
from .rows import Rows

KEY_LIMIT = 256
VALUE_LIMIT = 1024 * 1024


class MemoryValues:
    """What agents remember under a key."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        """Give the value of a key, and its labels, or raise NotFound."""
        if (namespace, key) not in self._rows.values:
            raise NotFound("key", key)
        value, labels = self._rows.values[namespace, key]
        return json.loads(value), labels

    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        """Put a value under a key, with the labels of ``by``."""
        _check_key(key)
        row = _written(value), by.labels
        self._rows.owners[namespace, key] = by.owner
        await self._rows.write(self._put, (namespace, key), row, also)

    def _put(
        self,
        at: tuple[str, str],
        row: tuple[str, frozenset[str]] | None,
        also: Keep | None,
    ) -> None:
        if row is None and at not in self._rows.values:
            raise NotFound("key", at[1])
        if row is None:
            del self._rows.values[at]
        else:
            self._rows.values[at] = row
        self._rows.keep(also)

    async def delete(
        self, by: Context, namespace: str, key: str, also: Keep | None = None
    ) -> None:
        """Forget a key; NotFound when it has no value."""
        del by
        await self._rows.write(self._put, (namespace, key), None, also)

    async def items(self, namespace: str) -> list[tuple[str, Json]]:
        """Give every key of a namespace with its value, sorted by key."""
        found = sorted(self._rows.values.items())
        return [(at[1], json.loads(v)) for at, (v, _) in found if at[0] == namespace]

    async def search(self, owner: str, agent_id: str, query: str) -> Sequence[Json]:
        """Give values that have all these words, the newest first; no messages."""
        words = query.casefold().split()
        found: list[Json] = []
        for (namespace, key), (value, labels) in self._rows.values.items():
            mine = owner in {"", self._rows.owners[namespace, key]}
            plain = json.loads(value)
            said = plain if isinstance(plain, str) else value
            text = f"{key} {said}".casefold()
            near = namespace in {agent_id, "shared"} and bool(words)
            if mine and near and all(word in text for word in words):
                row = {"kind": "memory", "key": key, "text": value}
                found.insert(0, {**row, "at": 0.0, "labels": sorted(labels)})
        return found


def _check_key(key: str) -> None:
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidInput("key", "is not valid Unicode text") from None
    if not 1 <= size <= KEY_LIMIT:
        raise InvalidInput("key", f"takes 1 to {KEY_LIMIT} bytes of UTF-8, not {size}")


def _written(value: Json) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput("value", "is not JSON") from None
    if size > VALUE_LIMIT:
        raise TooLarge(f"value: {size} bytes of JSON; at most {VALUE_LIMIT} are kept")
    return text
