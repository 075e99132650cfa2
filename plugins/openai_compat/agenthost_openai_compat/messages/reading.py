"""The messages of a request, as a turn takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from agenthost import (
    File,
    Image,
    InvalidInput,
    JsonObject,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolOutput,
    ToolUse,
)

from ..checks import filled, taken
from ..reading import APPLICATION, Asked
from ..tools import Inner, turn_of
from .answer import SEALED
from .blocks import Fetched, parts_of, text_of

THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class Reader:
    """Reads a conversation, message by message.

    Args:
        fetched: What its URLs lead to.
        inner: What earlier turns have kept of their inner parts.
        stamp: The model whose thoughts go back to it; None where they are passed over.
    """

    def __init__(
        self, fetched: Fetched, inner: Inner, stamp: JsonObject | None = None
    ) -> None:
        self._stamp = stamp
        self._fetched = fetched
        self._inner = inner
        self._own: Sequence[ToolOutput] = ()
        self._said: list[Message] = []
        self._open: Mapping[str, ToolUse] = {}
        self._outputs: dict[str, ToolOutput] = {}

    def read(
        self, system: str | list[dict[str, Any]] | None, messages: Sequence[JsonObject]
    ) -> Asked:
        """Read all.

        Raises:
            InvalidInput: A message is not as it should be, or the last is not one to
                answer.
        """
        instructions = "" if system is None else text_of(system, "system")
        role: object = None
        for number, message in enumerate(messages):
            role = message.get("role")
            read = self._READS.get(role) if isinstance(role, str) else None
            if read is None:
                roles = ", ".join(self._READS)
                raise InvalidInput(f"messages.{number}.role", f"must be one of {roles}")
            read(self, message.get("content"), f"messages.{number}.content")
        if not self._said or role == "assistant":
            problem = "the last must be the user's: no answer is begun by its client"
            raise InvalidInput("messages", problem)
        self._close_calls()
        last = self._said.pop()
        return Asked(last, tuple(self._said), instructions)

    def _instruct(self, content: object, place: str) -> None:
        """Take what the application says in the middle of a conversation."""
        self._close_calls()
        text = APPLICATION + text_of(content, place)
        self._said.append(Message(Role.USER, (Text(text),)))

    def _ask(self, content: object, place: str) -> None:
        if isinstance(content, str) and content.strip():
            self._close_calls()
            self._said.append(Message(Role.USER, (Text(content),)))
            return
        parts: list[Part] = []
        answers = len(self._outputs)
        blank = isinstance(content, str)
        for at, block in enumerate(() if blank else taken(content, list, place)):
            if isinstance(block, dict) and block.get("type") == "tool_result":
                output = self._output(block, f"{place}.{at}")
                self._outputs[output.id] = output
            else:
                parts += parts_of(block, f"{place}.{at}", self._fetched)
        if any(not isinstance(part, Text) or part.text.strip() for part in parts):
            self._close_calls()
            self._said.append(Message(Role.USER, tuple(parts)))
        elif len(self._outputs) == answers:
            raise InvalidInput(place, "must not be empty")

    def _output(self, block: JsonObject, place: str) -> ToolOutput:
        id_ = filled(block.get("tool_use_id"), f"{place}.tool_use_id")
        use = self._open.get(id_)
        if use is None or use.id in self._outputs:
            problem = "answers no open tool_use of the assistant's message before it"
            raise InvalidInput(f"{place}.tool_use_id", problem)
        failed = block.get("is_error")
        if failed is not None and not isinstance(failed, bool):
            raise InvalidInput(f"{place}.is_error", "must be true or false")
        text, media = self._result(block.get("content"), f"{place}.content")
        return ToolOutput(use.id, use.name, text, bool(failed), media)

    def _result(
        self, content: object, place: str
    ) -> tuple[str, tuple[Image | File, ...]]:
        """Read what a tool gave: all in words, which name its media in their places."""
        if content is None or isinstance(content, str):
            return content or "", ()
        words: list[str] = []
        media: list[Image | File] = []
        for at, block in enumerate(taken(content, list, place)):
            for part in parts_of(block, f"{place}.{at}", self._fetched):
                if isinstance(part, Image | File):
                    media.append(part)
                    words.append(f"[{_name(part)}]")
                elif isinstance(part, Text):
                    words.append(part.text)
        return "\n".join(words), tuple(media)

    def _answer(self, content: object, place: str) -> None:
        self._close_calls()
        if isinstance(content, str):
            if content:
                self._said.append(Message(Role.ASSISTANT, (Text(content),)))
            return
        listed = enumerate(taken(content, list, place))
        parts = [part for at, b in listed for part in self._block(b, f"{place}.{at}")]
        uses = [part for part in parts if isinstance(part, ToolUse)]
        self._open = {use.id: use for use in uses}
        if len(self._open) < len(uses):
            raise InvalidInput(place, "two tool_use blocks have the same id")
        kept = self._inner.get(turn_of(uses[0].id)) if uses else None
        if kept is not None:
            self._said += kept.said
            self._open, self._own = kept.calls, kept.outputs
        elif parts:
            self._said.append(Message(Role.ASSISTANT, tuple(parts)))

    def _block(self, block: object, place: str) -> tuple[Part, ...]:
        thought = None if self._stamp is None else _thought(block, self._stamp)
        return _said(block, place) if thought is None else (thought,)

    def _close_calls(self) -> None:
        """Put the results together, those of the agent's own tools first."""
        if outputs := (*self._own, *self._outputs.values()):
            self._said.append(Message(Role.TOOL, outputs))
            self._own, self._outputs = (), {}
        self._open = {}

    _READS: ClassVar[Mapping[str, Callable[[Reader, object, str], None]]] = {
        "user": _ask,
        "assistant": _answer,
        "system": _instruct,
    }


def turns_in(messages: Sequence[JsonObject]) -> Iterable[str]:
    """Name the turns whose inner parts may be kept: calls of theirs are in messages."""
    for message in messages:
        content = message.get("content")
        if message.get("role") == "assistant" and isinstance(content, list):
            ids = (_id_of(block) for block in content)
            if turn := turn_of(next(filter(None, ids), "")):
                yield turn


def _id_of(block: object) -> str:
    match block:
        case {"type": "tool_use", "id": str(id_)}:
            return id_
    return ""


def _thought(block: object, stamp: JsonObject) -> Reasoning | None:
    """Read a thought that its vendor has signed or sealed, as it came."""
    match block:
        case {"type": "thinking", "thinking": str(text), "signature": str(mark)} if (
            mark
        ):
            return Reasoning(text, {SEALED: {"signature": mark, **stamp}})
        case {"type": "redacted_thinking", "data": str(data)} if data:
            return Reasoning("", {SEALED: {"data": data, **stamp}})
    return None


def _said(block: object, place: str) -> tuple[Part, ...]:
    """Read a block of an answer; thoughts are passed over."""
    match block:
        case {"type": "text", "text": str(text)}:
            return (Text(text),) if text else ()
        case {"type": "tool_use", "id": str(id_), "name": str(name), "input": dict(it)}:
            id_, name = filled(id_, f"{place}.id"), filled(name, f"{place}.name")
            return (ToolUse(id_, name, it),)
        case {"type": str(kind)} if kind in THOUGHTS:
            return ()
        case {"type": "text" | "tool_use"}:
            raise InvalidInput(place, "must have all that belongs to its type")
        case {"type": str(kind)}:
            problem = f"{kind[:100]!r} is not served: its tool runs at Anthropic alone"
            raise InvalidInput(f"{place}.type", problem)
    raise InvalidInput(place, "must be of type text, tool_use or thinking")


def _name(part: Image | File) -> str:
    if isinstance(part, File):
        return f"document: {part.name}, {part.media_type}"
    return f"image: {part.media_type}"
