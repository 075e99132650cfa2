"""A conversation: which of its calls are open, and its size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .chat import File, Image, Message, Reasoning, Role, Text, ToolOutput, ToolUse

UNKNOWN = (
    "No result is known: the call was interrupted. It may or may not have taken "
    "effect; check before doing it again."
)
_IMAGE_TOKENS = 1_000


def open_calls(said: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Give the calls of the last answer that have no result behind it."""
    answered: set[str] = set()
    for message in reversed(said):
        if message.role is not Role.TOOL:
            return tuple([use for use in message.tool_uses if use.id not in answered])
        answered.update(p.id for p in message.parts if isinstance(p, ToolOutput))
    return ()


def estimate_tokens(history: Iterable[Message]) -> int:
    """Estimate a conversation's tokens: four characters each, every part counted.

    A message takes four of them by itself.
    """
    return sum(4 + sum(map(_part_tokens, m.parts)) for m in history)


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
