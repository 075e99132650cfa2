"""What is remembered and what was said, by words: only ever of one agent.

The words stand in the rows themselves, or go with them: a search sees what a commit has
left, and nothing else. Where the database has an index, it finds what has words that
begin with those of the query, the best first. Where it has none, or they begin nothing,
the words are looked for as they are, the newest first. A query has no syntax.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenthost import JsonObject, Row, Store
from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, select

from .codec import load_labels
from .session_rows import SUPERSEDED
from .tables import KV_INDEX, kv, messages, sessions
from .texts import TEXT_INDEX, MessageTexts, texts
from .word_index import belongs, who
from .words import CUT, WORDS, folded, matching, patterns

SHARED = "shared"
FOUND = 20
"""So many of each kind."""
EXCERPT = 600
"""Characters that are shown of one, around the first word of the query."""
_BEFORE = 200

_AGENT: ColumnElement[str] = bindparam("agent")
_NAMES = tuple(f"word{number}" for number in range(WORDS))


def _has_all(text: ColumnElement[str]) -> ColumnElement[bool]:
    return and_(*(text.like(bindparam(name), escape="/") for name in _NAMES))


def _owned(owner: ColumnElement[str]) -> ColumnElement[bool]:
    asked: ColumnElement[str] = bindparam("owner")
    return or_(asked == "", owner == asked)


def _mine(whose: ColumnElement[str], *names: str) -> ColumnElement[bool]:
    return or_(*(whose == bindparam(name) for name in names))


_REMEMBERED: Select[Any] = (
    select(kv.c.key, kv.c.value, kv.c.updated_at, kv.c.labels)
    .where(
        or_(kv.c.namespace == _AGENT, kv.c.namespace == bindparam("shared")),
        _owned(kv.c.owner),
        _has_all(kv.c.words),
    )
    .order_by(kv.c.updated_at.desc(), kv.c.key)
    .limit(FOUND)
)
_SAID: Select[Any] = (
    select(
        messages.c.session_id,
        messages.c.turn_id,
        messages.c.role,
        messages.c.created_at,
        messages.c.labels,
        texts.c.text,
    )
    .join(messages, messages.c.id == texts.c.id)
    .join(sessions, sessions.c.id == messages.c.session_id)
    .where(
        sessions.c.agent_id == _AGENT,
        messages.c.partial != SUPERSEDED,
        _owned(messages.c.owner),
        _has_all(texts.c.text),
    )
    .order_by(messages.c.id.desc())
    .limit(FOUND)
)
_BEST_REMEMBERED = KV_INDEX.joined(_REMEMBERED)
_BEST_SAID = TEXT_INDEX.joined(_SAID)
# Those of one owner are few: they are found by an index of whose they are.
_OWN_REMEMBERED = _REMEMBERED.where(_mine(kv.c.who, "its", "common"))
_OWN_SAID = _SAID.where(_mine(texts.c.who, "its"))


async def search(
    store: Store, texts_: MessageTexts, owner: str, agent_id: str, query: str
) -> Sequence[JsonObject]:
    """Give what has every word of the query, values first, the best first.

    Args:
        store: Where the rows are.
        texts_: The words of messages.
        owner: Only what this one caused; "" is anybody.
        agent_id: Whose it is.
        query: Words; of more than six the first six count.
    """
    words = patterns(query)
    if not words:
        return []
    by = {"agent": agent_id, "owner": owner}
    await texts_.catch_up()
    kept: Sequence[Row] = ()
    said: Sequence[Row] = ()
    if await texts_.indexed():
        kept, said = await _best(store, by, query)
    by |= _bound(words)
    shared, its, common = {"shared": SHARED}, {}, {}
    if owner:
        its = {"its": who(agent_id, owner)}
        common = {"common": who(SHARED, owner)}
    kept = kept or await store.read(
        _OWN_REMEMBERED if owner else _REMEMBERED, by | shared | its | common
    )
    said = said or await store.read(_OWN_SAID if owner else _SAID, by | its)
    first = folded(query).split()[0]
    return [
        *(_value(row, first) for row in kept),
        *(_words(row, first) for row in said),
    ]


async def _best(
    store: Store, by: dict[str, str], query: str
) -> tuple[Sequence[Row], Sequence[Row]]:
    match, signs = matching(query)
    by |= _bound(signs)
    its, common = (
        f"who : {belongs(each, by['owner'])}" for each in (by["agent"], SHARED)
    )
    either = {"match": f"({its} OR {common}) AND {match}", "shared": SHARED}
    kept = await store.read(_BEST_REMEMBERED, by | either)
    return kept, await store.read(_BEST_SAID, by | {"match": f"{its} AND {match}"})


def _bound(words: Sequence[str]) -> dict[str, str]:
    every = [*words, *["%"] * (WORDS - len(words))]
    return dict(zip(_NAMES, every, strict=True))


def words_of(key: str, value: object, written: str) -> str:
    """Give the words by which a value is found."""
    return folded(f"{key} {value if isinstance(value, str) else written}")


def _value(row: Row, first: str) -> JsonObject:
    return {
        "kind": "memory",
        "key": row["key"],
        "text": _excerpt(row["value"], first),
        "at": row["updated_at"],
        "labels": sorted(load_labels(row["labels"])),
    }


def _words(row: Row, first: str) -> JsonObject:
    return {
        "kind": "message",
        "session_id": row["session_id"],
        "turn_id": row["turn_id"],
        "role": row["role"],
        "text": _excerpt(row["text"], first),
        "at": row["created_at"],
        "labels": sorted(load_labels(row["labels"])),
    }


def _excerpt(text: str, first: str) -> str:
    if len(text) <= EXCERPT:
        return text
    begin = max(text.casefold().find(first) - _BEFORE, 0)
    before = CUT if begin else ""
    part = text[begin : begin + EXCERPT]
    return f"{before}{part}{CUT if begin + EXCERPT < len(text) else ''}"
