"""Lists of sessions: which, in what order, and where a word was said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenthost import SessionFilter
from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    null,
    or_,
    select,
    tuple_,
)

from .tables import agents, sessions
from .texts import texts
from .words import WORDS, patterns

NO_LIMIT = 2**31 - 1
_NAMES = tuple(f"word{number}" for number in range(WORDS))


def _with_every_word(text: ColumnElement[str]) -> ColumnElement[bool]:
    return and_(*(text.like(bindparam(name), escape="/") for name in _NAMES))


def _statement(*, newest: bool, search: bool) -> Select[Any]:
    columns = [c for c in sessions.c if c.name != "summary"]
    at = "updated_at" if newest else "created_at"
    anchor = sessions.alias("anchor")
    after: ColumnElement[str] = bindparam("after")
    here = tuple_(sessions.c[at], sessions.c.id)
    mark = select(anchor.c[at], anchor.c.id).where(anchor.c.id == after)
    there = mark.scalar_subquery()
    agent: ColumnElement[str] = bindparam("agent")
    archived: ColumnElement[int] = bindparam("archived")
    found = (
        select(*columns, null().label("summary"))
        .join(agents, agents.c.id == sessions.c.agent_id)
        .where(
            sessions.c.ephemeral == 0,
            or_(agent == "", sessions.c.agent_id == agent),
            or_(archived != 1, sessions.c.archived_at.is_not(None)),
            or_(archived != 0, sessions.c.archived_at.is_(None)),
            or_(after == "", here < there if newest else here > there),
        )
        .limit(bindparam("limit"))
    )
    for column in (sessions.c[at], sessions.c.id):
        found = found.order_by(column.desc() if newest else column)
    if not search:
        return found
    said = select(texts.c.session_id).where(_with_every_word(texts.c.text))
    titled = _with_every_word(sessions.c.title_folded)
    return found.where(or_(titled, sessions.c.id.in_(said)))


_STATEMENTS = {
    (newest, search): _statement(newest=newest, search=search)
    for newest in (False, True)
    for search in (False, True)
}


def listing(wanted: SessionFilter) -> tuple[Select[Any], Mapping[str, Any]] | None:
    """Give the statement that lists sessions and its parameters.

    None when nothing can be found: a text to search has no word.
    """
    words = patterns(wanted.text)
    if wanted.text and not words:
        return None
    either = -1 if wanted.archived is None else int(wanted.archived)
    parameters: dict[str, Any] = {
        "agent": wanted.agent_id,
        "archived": either,
        "after": wanted.after,
        "limit": wanted.limit or NO_LIMIT,
    }
    for number, name in enumerate(_NAMES if words else ()):
        parameters[name] = words[number] if number < len(words) else "%"
    return _STATEMENTS[wanted.newest, bool(words)], parameters
