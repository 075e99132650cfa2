"""The messages of a request, as a turn takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from agenthost import (
    InvalidInput,
    JsonObject,
    Message,
    Part,
    Role,
    Text,
    ToolOutput,
    ToolUse,
)
from agenthost_values.value_class import value_class

from .checks import filled, taken
from .media import Remote, file_of, image_of, looked_at
from .tools import Inner, turn_of

APPLICATION = "[The application that you speak through says:]\n"
"""Stands before instructions that come in the middle of a conversation."""
SPEAKER = "[{} says:]\n"
"""Stands before what somebody says who has a name, where a name has no other place."""
_NAME = re.compile(r"[^\s<|\\/>]{1,64}")


@value_class
class Asked:
    """What a turn is started with; the message is the user's, or answers calls."""

    message: Message
    history: tuple[Message, ...]
    instructions: str


class Reader:
    """Reads a conversation, message by message.

    Args:
        remote: The pictures that were fetched, by their URLs.
        inner: What earlier turns have kept of their inner parts.
        names: Whether names of who speaks go on as they are; else users' are told in
            words.
    """

    def __init__(self, remote: Remote, inner: Inner, *, names: bool) -> None:
        self._names = names
        self._remote = remote
        self._inner = inner
        self._own: Sequence[ToolOutput] = ()
        self._said: list[Message] = []
        self._instructions: list[str] = []
        self._open: Mapping[str, ToolUse] = {}
        self._outputs: dict[str, ToolOutput] = {}

    def read(self, messages: Sequence[JsonObject]) -> Asked:
        """Read all.

        Raises:
            InvalidInput: One is not as it should be, or the last is not one to answer.
        """
        role: object = None
        for number, message in enumerate(messages):
            role = message.get("role")
            read = self._READS.get(role) if isinstance(role, str) else None
            if read is None:
                roles = ", ".join(self._READS)
                raise InvalidInput(f"messages.{number}.role", f"must be one of {roles}")
            if role != "tool":
                self._close_calls()
            before = len(self._said)
            read(self, message, number)
            if name := _name_of(message, number):
                self._call_it(name, role, before)
        self._close_calls()
        if not self._said or role == "assistant":
            problem = "the last must be the user's, or answer a call of a tool"
            raise InvalidInput("messages", problem)
        last = self._said.pop()
        return Asked(last, tuple(self._said), "\n\n".join(self._instructions))

    def _instruct(self, message: JsonObject, number: int) -> None:
        """Take what the application says.

        What begins a conversation stands behind the agent's own system prompt; what
        comes later stays in its place, so that what was said before it is unchanged.
        """
        text = _text_of(message.get("content"), number)
        if name := _name_of(message, number):
            text = SPEAKER.format(name) + text
        if self._said:
            self._said.append(Message(Role.USER, (Text(APPLICATION + text),)))
        elif text:
            self._instructions.append(text)

    def _call_it(self, name: str, role: object, before: int) -> None:
        """Say who speaks in the message that was read; a tool is known by its call."""
        if role == "user" and not self._names:
            last = self._said[-1]
            parts = (Text(SPEAKER.format(name)), *last.parts)
            self._said[-1] = replace(last, parts=parts)
        elif role == "user" or (role == "assistant" and self._names):
            said = [replace(each, name=name) for each in self._said[before:]]
            self._said[before:] = said

    def _ask(self, message: JsonObject, number: int) -> None:
        # Most messages are texts: names of fields are made where one is wrong.
        content = message.get("content")
        if isinstance(content, str) and content.strip():
            self._said.append(Message(Role.USER, (Text(content),)))
            return
        place = f"messages.{number}.content"
        blank = isinstance(content, str)
        listed = enumerate(() if blank else taken(content, list, place))
        each = (self._part(part, f"{place}.{at}") for at, part in listed)
        parts = tuple(part for part in each if part != Text(""))
        if not any(not isinstance(p, Text) or p.text.strip() for p in parts):
            raise InvalidInput(place, "must not be empty")
        self._said.append(Message(Role.USER, parts))

    def _part(self, part: object, place: str) -> Part:
        match part:
            case {"type": "text", "text": str(text)}:
                return Text(text)
            case {"type": "image_url", "image_url": {"url": str(url)} as given}:
                image = image_of(url, f"{place}.image_url.url", self._remote)
                where = f"{place}.image_url.detail"
                return looked_at(image, given.get("detail"), where)
            case {"type": "file", "file": dict(given)}:
                return file_of(given, f"{place}.file")
        problem = "must be of type text, image_url or file, with what belongs to it"
        raise InvalidInput(place, problem)

    def _answer(self, message: JsonObject, number: int) -> None:
        content, given = message.get("content"), message.get("tool_calls")
        text = "" if content is None else _text_of(content, number)
        if not given and text:
            self._said.append(Message(Role.ASSISTANT, (Text(text),)))
            return
        place = f"messages.{number}"
        listed = [] if given is None else taken(given, list, f"{place}.tool_calls")
        uses = [_use(use, f"{place}.tool_calls.{at}") for at, use in enumerate(listed)]
        self._open = {use.id: use for use in uses}
        if len(self._open) < len(uses):
            raise InvalidInput(f"{place}.tool_calls", "two have the same id")
        kept = self._inner.get(turn_of(uses[0].id)) if uses else None
        if kept is not None:
            self._said += kept.said
            self._open, self._own = kept.calls, kept.outputs
            return
        parts: tuple[Part, ...] = (*((Text(text),) if text else ()), *uses)
        if parts:
            self._said.append(Message(Role.ASSISTANT, parts))

    def _output(self, message: JsonObject, number: int) -> None:
        place = f"messages.{number}"
        id_ = filled(message.get("tool_call_id"), f"{place}.tool_call_id")
        use = self._open.get(id_)
        if use is None or use.id in self._outputs:
            problem = "answers no open call of the assistant's message before it"
            raise InvalidInput(f"{place}.tool_call_id", problem)
        text = _text_of(message.get("content"), number)
        self._outputs[use.id] = ToolOutput(use.id, use.name, text)

    def _close_calls(self) -> None:
        """Put the results together, those of the agent's own tools first."""
        if outputs := (*self._own, *self._outputs.values()):
            self._said.append(Message(Role.TOOL, outputs))
            self._own, self._outputs = (), {}
        self._open = {}

    _READS: ClassVar[Mapping[str, Callable[[Reader, JsonObject, int], None]]] = {
        "system": _instruct,
        "developer": _instruct,
        "user": _ask,
        "assistant": _answer,
        "tool": _output,
    }


def _name_of(message: JsonObject, number: int) -> str:
    """Read who speaks; nothing where that is not said."""
    name = message.get("name")
    if name is None:
        return ""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        problem = "must have 1 to 64 characters, no white space and none of < | \\ / >"
        raise InvalidInput(f"messages.{number}.name", problem)
    return name


def _use(given: object, place: str) -> ToolUse:
    """Read a call that an assistant's message asks for."""
    match given:
        case {"id": str(id_), "function": {"name": str(name), "arguments": str(text)}}:
            pass
        case _:
            raise InvalidInput(place, "must have an id and a function with arguments")
    try:
        arguments: Any = json.loads(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    where = f"{place}.function.arguments"
    if not isinstance(arguments, dict):
        raise InvalidInput(where, "must be an object of JSON, as a text")
    return ToolUse(filled(id_, f"{place}.id"), filled(name, f"{place}.name"), arguments)


def _text_of(content: object, number: int) -> str:
    """Read a message's content that has words alone."""
    if isinstance(content, str):
        return content
    place = f"messages.{number}.content"
    words: list[str] = []
    for at, part in enumerate(taken(content, list, place)):
        match part:
            case {"type": "text", "text": str(text)}:
                words.append(text)
            case {"type": "refusal", "refusal": str(text)}:
                words.append(text)
            case _:
                raise InvalidInput(f"{place}.{at}", "must be of type text")
    return "".join(words)
