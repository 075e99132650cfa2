"""A conversation as it may be sent: every call has its result; and its size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .chat import File, Image, Message, Reasoning, Role, Text, ToolOutput, ToolUse

UNKNOWN = (
    "No result is known: the call was interrupted. It may or may not have taken "
    "effect; check before doing it again."
)
_IMAGE_TOKENS = 1_000
_PER_MESSAGE = 4


def repaired(history: Iterable[Message]) -> list[Message]:
    """Give every tool call one result right behind it, and drop results without call.

    A call whose result is missing gets an error result that says so; a valid
    conversation comes back unchanged.
    """
    fixed: list[Message] = []
    for message in history:
        if message.role is Role.TOOL:
            _join_results(fixed, message)
            continue
        _close_calls(fixed)
        fixed.append(message)
    _close_calls(fixed)
    return fixed


def open_calls(said: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Give the calls of the last answer that have no result behind it."""
    answered: set[str] = set()
    for message in reversed(said):
        if message.role is not Role.TOOL:
            return tuple([use for use in message.tool_uses if use.id not in answered])
        answered.update(p.id for p in message.parts if isinstance(p, ToolOutput))
    return ()


def _join_results(fixed: list[Message], message: Message) -> None:
    called = {use.id for use in fixed[-1].tool_uses} if fixed else set()
    known = tuple(
        part
        for part in message.parts
        if isinstance(part, ToolOutput) and part.id in called
    )
    if known:
        fixed.append(message if known == message.parts else Message(Role.TOOL, known))


def _close_calls(fixed: list[Message]) -> None:
    if not fixed:
        return
    answered: set[str] = set()
    results: tuple[ToolOutput, ...] = ()
    caller = fixed[-1]
    if caller.role is Role.TOOL:
        results = tuple(p for p in caller.parts if isinstance(p, ToolOutput))
        answered = {part.id for part in results}
        caller = fixed[-2]
    missing = tuple(
        ToolOutput(use.id, use.name, UNKNOWN, is_error=True)
        for use in caller.tool_uses
        if use.id not in answered
    )
    if not missing:
        return
    if results:
        fixed.pop()
    fixed.append(Message(Role.TOOL, (*results, *missing)))


def estimate_tokens(history: Iterable[Message]) -> int:
    """Estimate a conversation's tokens: four characters each, every part counted."""
    return sum(_PER_MESSAGE + sum(map(_part_tokens, m.parts)) for m in history)


def _part_tokens(part: object) -> int:
    match part:
        case Text(text) | Reasoning(text):
            return len(text) // 4
        case ToolOutput(_, _, text):
            return len(text) // 4 + sum(map(_part_tokens, part.images))
        case ToolUse(_, name, arguments):
            return (len(name) + len(str(arguments))) // 4
        case Image() | File():
            return _IMAGE_TOKENS
    return 0
