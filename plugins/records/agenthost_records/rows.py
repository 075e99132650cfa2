"""Rows of turns and messages, read back."""

from __future__ import annotations

from agenthost import (
    Entry,
    Finish,
    PastFailure,
    Row,
    TurnRecord,
    TurnResult,
    TurnState,
    Usage,
)

from .codec import load_citations, load_labels, load_message, load_settings


def entry(row: Row) -> Entry:
    """Read a message with its place.

    Raises:
        Unavailable: The row does not match its digest: the database is damaged.
    """
    message = load_message(row["role"], row["parts"], row["digest"])
    seq, behind = row["seq"], row["behind"]
    place = seq if behind is None else behind
    at, partial = row["created_at"], bool(row["partial"])
    labels = load_labels(row["labels"])
    return Entry(message, seq, place, row["turn_id"], at, partial, labels)


def turn_record(row: Row) -> TurnRecord:
    """Read a turn's row."""
    result = TurnResult(
        text=row["response"] or "",
        usage=Usage(row["input_tokens"], row["output_tokens"]),
        iterations=row["iterations"],
        cost_micro_usd=row["cost_micro_usd"],
        model=row["model"] or "",
        labels=load_labels(row["labels"]),
        finish=Finish(row["finish"]) if row["finish"] else None,
        citations=load_citations(row["citations"]),
    )
    error = row["error"] and PastFailure(row["error"], row["error_code"])
    return TurnRecord(
        TurnState(row["state"]),
        result,
        error or None,
        row["agent_id"],
        row["session_id"],
        row["digest"],
        load_settings(row["settings"]),
        row["owner"] or "",
    )
