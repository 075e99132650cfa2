"""The schemas of the rows. A start needs their names and steps, and no SQLAlchemy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import SchemaSpec

from .steps import (
    find_by_words,
    go_on_in_place,
    line_up,
    name_sessions,
    owners_and_labels,
    see_it_otherwise,
    tell_of_their_lives,
    tell_what_it_rests_on,
    tell_what_was_asked,
    tell_who_remembers,
    tell_who_writes,
    tell_why_it_stopped,
    write_less,
)
from .word_steps import index_texts, number_values

if TYPE_CHECKING:
    from sqlalchemy import MetaData


def _kernel() -> MetaData:
    from .tables import metadata

    return metadata


def _memory() -> MetaData:
    from .tables import memory

    return memory


def _retention() -> MetaData:
    from .forgetting import retention_marks

    return retention_marks.metadata


def _persons() -> MetaData:
    from .persons import metadata

    return metadata


def _uploads() -> MetaData:
    from .uploads import metadata

    return metadata


def _search() -> MetaData:
    from .texts import metadata

    return metadata


KERNEL = SchemaSpec(
    "kernel",
    _kernel,
    (
        write_less,
        go_on_in_place,
        name_sessions,
        owners_and_labels,
        tell_who_writes,
        tell_why_it_stopped,
        tell_what_was_asked,
        tell_what_it_rests_on,
        line_up,
        tell_of_their_lives,
        see_it_otherwise,
    ),
)
MEMORY = SchemaSpec("kv", _memory, (tell_who_remembers, find_by_words, number_values))
RETENTION = SchemaSpec("retention", _retention)
PERSONS = SchemaSpec("persons", _persons)
SEARCH = SchemaSpec("search", _search, (index_texts,))
UPLOADS = SchemaSpec("uploads", _uploads)
