"""Key and value memory: JSON by key, each agent in a namespace of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from agenthost import (
    Clock,
    Context,
    InvalidInput,
    Json,
    JsonObject,
    Keep,
    NotFound,
    Row,
    Store,
    TooLarge,
    Unavailable,
)
from sqlalchemy import Connection, bindparam, delete, insert, select, update

from .codec import digest_of, dump_labels, load_labels
from .searching import search, words_of
from .tables import kv
from .texts import MessageTexts
from .word_index import who
from .words import spaced

KEY_LIMIT = 256
VALUE_LIMIT = 1024 * 1024
NESTING_LIMIT = 100

ONE = select(kv).where(
    kv.c.namespace == bindparam("namespace"), kv.c.key == bindparam("key")
)
ALL = (
    select(kv.c.key, kv.c.value, kv.c.digest)
    .where(kv.c.namespace == bindparam("namespace"))
    .order_by(kv.c.key)
)


class KeyValues:
    """What agents remember under a key; a namespace is an agent's id or ``shared``."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._texts = MessageTexts(store)

    async def get(self, namespace: str, key: str) -> tuple[Json, frozenset[str]]:
        """Give the value of a key, and its labels.

        Raises:
            NotFound: The key has no value.
            Unavailable: What is stored is not what was written.
        """
        row = await self._store.first(
            ONE, {"namespace": namespace, "key": checked_key(key)}
        )
        if row is None:
            raise NotFound("key", key)
        return value_of(row), load_labels(row["labels"])

    async def set(
        self,
        by: Context,
        namespace: str,
        key: str,
        value: Json,
        also: Keep | None = None,
    ) -> None:
        """Put a value under a key, in place of an earlier one.

        Args:
            by: Who puts it there, and the labels of what they know.
            namespace: Whose memory it is.
            key: 1 to 256 bytes.
            value: What is remembered.
            also: What is written in the same commit.

        Raises:
            InvalidInput: The key is empty or too long, or the value is not JSON.
            TooLarge: The value is longer than 1 MiB of JSON.
        """
        written = encoded(value)
        words = words_of(checked_key(key), value, written)
        row: dict[str, str | float] = {
            "value": written,
            "digest": digest_of(written),
            "updated_at": self._clock.time(),
            "owner": by.owner,
            "labels": dump_labels(by.labels),
            "words": words,
            "spaced": spaced(words),
            "who": who(namespace, by.owner),
        }
        at = namespace, key
        await self._store.write(partial(put, at=at, row=row, also=also))

    async def delete(
        self, by: Context, namespace: str, key: str, also: Keep | None = None
    ) -> None:
        """Forget a key.

        Raises:
            NotFound: The key has no value.
        """
        del by
        at = namespace, checked_key(key)
        if not await self._store.write(partial(remove, at=at, also=also)):
            raise NotFound("key", key)

    async def items(self, namespace: str) -> list[tuple[str, Json]]:
        """Give every key of a namespace with its value, sorted by key.

        Raises:
            Unavailable: What is stored is not what was written.
        """
        rows = await self._store.read(ALL, {"namespace": namespace})
        return [(row["key"], value_of(row)) for row in rows]

    async def search(
        self, owner: str, agent_id: str, query: str
    ) -> Sequence[JsonObject]:
        """Give what an agent remembers, and what was said to it, with these words."""
        return await search(self._store, self._texts, owner, agent_id, query)


def erase_namespace(connection: Connection, namespace: str) -> None:
    """Delete everything an agent remembered."""
    connection.execute(delete(kv).where(kv.c.namespace == namespace))


def checked_key(key: str) -> str:
    """Give the key back when it can be one.

    Raises:
        InvalidInput: It is empty, longer than 256 bytes or not valid Unicode.
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise InvalidInput("key", "is not valid Unicode text") from None
    if not 1 <= size <= KEY_LIMIT:
        raise InvalidInput("key", f"takes 1 to {KEY_LIMIT} bytes of UTF-8, not {size}")
    return key


def encoded(value: Json) -> str:
    """Write a value as compact JSON.

    Raises:
        InvalidInput: It is not JSON.
        TooLarge: It is longer than 1 MiB.
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput("value", "holds text that is not valid Unicode") from None
    except RecursionError:
        raise InvalidInput(
            "value", f"is nested deeper than {NESTING_LIMIT} levels"
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidInput("value", f"is not JSON: {error}") from None
    if size > VALUE_LIMIT:
        raise TooLarge(f"value: {size} bytes of JSON; at most {VALUE_LIMIT} are kept")
    # Few brackets cannot nest deeply: the walk is for the rare value.
    if text.count("[") + text.count("{") > NESTING_LIMIT:
        refuse_deep(value)
    return text


def refuse_deep(value: Json) -> None:
    """Refuse a value that a reader with a deeper stack could not parse again."""
    level = [value]
    for _ in range(NESTING_LIMIT):
        level = [
            child
            for item in level
            if isinstance(item, dict | list | tuple)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise InvalidInput("value", f"is nested deeper than {NESTING_LIMIT} levels")


def value_of(row: Row) -> Json:
    """Read the value of a row.

    Raises:
        Unavailable: The value does not match its digest.
    """
    if digest_of(row["value"]) != row["digest"]:
        raise Unavailable(
            f"the stored value of the key {row['key']!r} is damaged; "
            "set it again or restore a backup"
        )
    return json.loads(row["value"])


def put(
    connection: Connection,
    at: tuple[str, str],
    row: dict[str, str | float],
    also: Keep | None = None,
) -> None:
    """Write a row, counting its versions from 1."""
    namespace, key = at
    this = (kv.c.namespace == namespace) & (kv.c.key == key)
    changed = connection.execute(
        update(kv).where(this).values(version=kv.c.version + 1, **row)
    )
    if changed.rowcount == 0:
        connection.execute(
            insert(kv).values(namespace=namespace, key=key, version=1, **row)
        )
    if also is not None:
        also(connection)


def remove(connection: Connection, at: tuple[str, str], also: Keep | None) -> bool:
    """Delete a key; tell whether it was there."""
    gone = delete(kv).where(kv.c.namespace == at[0], kv.c.key == at[1])
    known = connection.execute(gone).rowcount > 0
    if known and also is not None:
        also(connection)
    return known
