"""Answers of models themselves as rows, kept for a day under an ``Idempotency-Key``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from agenthost import (
    Answered,
    Completion,
    Delta,
    Finish,
    Message,
    Reasoning,
    ReasoningChunk,
    Spent,
    Text,
    TextChunk,
    Usage,
)
from sqlalchemy import (
    Column,
    Connection,
    Float,
    MetaData,
    Table,
    bindparam,
    delete,
    insert,
    select,
)
from sqlalchemy import Text as Words

from .responses.words import rows_of, said_of

metadata = MetaData()
answers = Table(
    "openai_answers",
    metadata,
    Column("id", Words, primary_key=True),
    Column("owner", Words, nullable=False),
    Column("digest", Words, nullable=False),
    Column("created_at", Float, nullable=False, index=True),
    Column("answer", Words, nullable=False),
)
ONE = select(answers).where(answers.c.id == bindparam("id"))


def keep(connection: Connection, row: Mapping[str, Any]) -> None:
    """Write an answer, unless another daemon was first."""
    known = select(answers.c.id).where(answers.c.id == row["id"])
    if connection.execute(known).first() is None:
        connection.execute(insert(answers).values(**row))


def forget(connection: Connection, before: float) -> None:
    """Delete what is older."""
    connection.execute(delete(answers).where(answers.c.created_at < before))


def row_of(last: Answered) -> dict[str, Any]:
    """Write what was said, and what it took."""
    completion = last.completion
    told = {
        "said": rows_of([completion.message]),
        "finish": completion.finish.value,
        "stop": completion.stop,
        "usage": asdict(completion.usage),
        "spent": {**asdict(last.spent), "usage": asdict(last.spent.usage)},
    }
    return {"answer": json.dumps(told)}


def read(answer: str) -> Answered:
    """Read what :func:`row_of` wrote."""
    told = json.loads(answer)
    (message,) = said_of(told["said"])
    finish, usage = Finish(told["finish"]), Usage(**told["usage"])
    completion = Completion(message, finish, usage, stop=told["stop"])
    spent = {**told["spent"], "usage": Usage(**told["spent"]["usage"])}
    return Answered(completion, Spent(**spent))


def pieces_of(kept: Answered) -> Iterator[Delta]:
    """Give the pieces in which an answer may have come."""
    message: Message = kept.completion.message
    for part in message.parts:
        if isinstance(part, Text):
            yield TextChunk(part.text, part.logprobs)
            if part.opaque:
                yield TextChunk("", (), part.opaque)
        elif isinstance(part, Reasoning):
            if part.text:
                yield ReasoningChunk(part.text)
            if part.opaque:
                yield ReasoningChunk("", part.opaque)
