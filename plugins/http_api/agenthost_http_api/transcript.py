"""A conversation as people read it: tools folded in, each turn with how it stands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from agenthost import (
    Citation,
    Entry,
    Image,
    Message,
    Role,
    Session,
    ToolOutput,
    TurnRecord,
    TurnState,
    timestamp,
)

from .attachments import files_of
from .shapes import Cited, MessageUsage, SessionMessage, ToolEntry, TurnStatus

STATUS: Mapping[TurnState, TurnStatus] = {
    TurnState.RUNNING: "running",
    TurnState.WAITING: "waiting",
    TurnState.DONE: "complete",
    TurnState.CANCELLED: "stopped",
    TurnState.INTERRUPTED: "interrupted",
    TurnState.FAILED: "failed",
}


def visible(
    session: Session,
    entries: Sequence[Entry],
    turns: Mapping[str, TurnRecord],
    pinned: Collection[int] = (),
) -> list[SessionMessage]:
    """Show a session, its summary first; results stand in the message that asked."""
    shown: list[SessionMessage] = []
    if session.summary is not None:
        shown.append(_words(session.summary))
    open_calls: dict[str, ToolEntry] = {}
    last: dict[str, SessionMessage] = {}
    for entry in entries:
        message = entry.message
        if message.role is Role.TOOL:
            _answer(open_calls, message)
            continue
        row = _words(message)
        calls = _calls(message)
        if calls:
            row["tools"] = list(calls.values())
            open_calls = calls
        record = turns.get(entry.turn_id or "")
        _tell(row, entry, record)
        if entry.seq in pinned:
            row["pinned"] = True
        if record is not None and message.role is Role.ASSISTANT:
            last[entry.turn_id or ""] = row
        shown.append(row)
    for turn_id, row in last.items():
        _sum_up(row, turns[turn_id])
    return shown


def cited(citations: Iterable[Citation]) -> list[Cited]:
    """Show the pages that an answer rests on."""
    return [{"url": each.url, "title": each.title} for each in citations]


def _words(message: Message) -> SessionMessage:
    row: SessionMessage = {
        "role": message.role.value.capitalize(),
        "content": message.text,
    }
    if message.citations:
        row["citations"] = cited(message.citations)
    images = sum(isinstance(part, Image) for part in message.parts)
    if images:
        row["images"] = images
    if files := files_of(message):
        row["files"] = files
    return row


def _calls(message: Message) -> dict[str, ToolEntry]:
    return {
        use.id: {
            "name": use.name,
            "input": dict(use.arguments),
            "result": None,
            "is_error": False,
        }
        for use in message.tool_uses
    }


def _answer(open_calls: dict[str, ToolEntry], message: Message) -> None:
    for part in message.parts:
        if isinstance(part, ToolOutput) and part.id in open_calls:
            open_calls[part.id]["result"] = part.text
            open_calls[part.id]["is_error"] = part.is_error


def _tell(row: SessionMessage, entry: Entry, record: TurnRecord | None) -> None:
    """Say when it was said, in which turn, and how it stands."""
    row["id"], row["at"] = entry.seq, timestamp(entry.at)
    if entry.turn_id is not None:
        row["turn_id"] = entry.turn_id
    whole = entry.message.role is Role.ASSISTANT and not entry.partial
    if record is None or whole:
        row["status"] = "interrupted" if entry.partial else "complete"
        return
    row["status"] = STATUS[record.state]
    if record.error is not None:
        row["error"] = record.error.message


def _sum_up(row: SessionMessage, record: TurnRecord) -> None:
    usage: MessageUsage = {
        "input_tokens": record.result.usage.input_tokens,
        "output_tokens": record.result.usage.output_tokens,
        "cost_usd": record.result.cost_micro_usd / 1_000_000,
    }
    if record.state in {TurnState.RUNNING, TurnState.WAITING}:
        return
    row["usage"] = usage
    if record.result.model:
        row["model"] = record.result.model
    if record.result.finish is not None:
        row["finish"] = record.result.finish.value
