"""The items of a conversation, as a turn takes them.

A message of an assistant and its calls are items of their own here and one message of
a turn: what an assistant says and calls in a row is put together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from agenthost import (
    Image,
    InvalidInput,
    JsonObject,
    Medium,
    Message,
    Part,
    Role,
    Text,
    ToolOutput,
    ToolUse,
)
from agenthost_values.value_class import value_class

from ..checks import filled, taken
from ..media import Remote, file_of, image_of, looked_at
from ..reading import APPLICATION, Asked
from ..tools import Inner, Kept, turn_of
from .items import text_of, whole_text

Read = Callable[["ItemReader", JsonObject, str], None]


@value_class
class Link:
    """A response of the conversation so far: what it was asked and what it said.

    ``kept`` is its turn as it was, None where another agent goes on: that is told what
    the client saw, which ``output`` is.
    """

    items: Sequence[JsonObject]
    remote: Remote
    output: Sequence[JsonObject]
    kept: Kept | None


class ItemReader:
    """Reads a conversation, item by item.

    Args:
        inner: What earlier turns have kept of their inner parts.
    """

    def __init__(self, inner: Inner) -> None:
        self._inner = inner
        self._remote: Remote = {}
        self._said: list[Message] = []
        self._instructions: list[str] = []
        self._answer: list[Text | ToolUse] = []
        self._open: Mapping[str, ToolUse] = {}
        self._own: Sequence[ToolOutput] = ()
        self._outputs: dict[str, ToolOutput] = {}
        self._asked: set[str] = set()

    def go_through(self, link: Link) -> None:
        """Take up what was said before.

        Raises:
            InvalidInput: It does not fit together any more.
        """
        self.add(link.items, link.remote)
        if link.kept is None:
            self.add(link.output, {})
            return
        self._close()
        self._said += link.kept.said
        self._open, self._own = link.kept.calls, link.kept.outputs

    def add(self, items: Sequence[JsonObject], remote: Remote) -> None:
        """Read items.

        Args:
            items: Of types that are taken.
            remote: The pictures of them that were fetched, by their URLs.

        Raises:
            InvalidInput: One is not as it should be.
        """
        self._remote = remote
        for number, item in enumerate(items):
            place = f"input.{number}"
            if item["type"] == "message":
                self._message(item, place)
            else:
                self._READS[item["type"]](self, item, place)

    def asked(self, instructions: str) -> Asked:
        """Give what was read, with the instructions of the request before its own.

        Raises:
            InvalidInput: The last is nothing to answer.
        """
        self._close()
        if not self._said or self._said[-1].role is Role.ASSISTANT:
            problem = "the last must be the user's, or the output of a call"
            raise InvalidInput("input", problem)
        last = self._said.pop()
        told = "\n\n".join(filter(None, (instructions, *self._instructions)))
        return Asked(last, tuple(self._said), told)

    def _message(self, item: JsonObject, place: str) -> None:
        role = item.get("role")
        read = self._ROLES.get(role) if isinstance(role, str) else None
        if read is None:
            roles = ", ".join(self._ROLES)
            raise InvalidInput(f"{place}.role", f"must be one of {roles}")
        read(self, item, f"{place}.content")

    def _instruct(self, item: JsonObject, place: str) -> None:
        text = text_of(item.get("content"), place)
        self._close()
        if self._said:
            self._said.append(Message(Role.USER, (Text(APPLICATION + text),)))
        elif text:
            self._instructions.append(text)

    def _ask(self, item: JsonObject, place: str) -> None:
        listed = enumerate(taken(item.get("content"), list, place))
        each = [self._part(part, f"{place}.{at}") for at, part in listed]
        parts = tuple(part for part in each if part != Text(""))
        if not any(not isinstance(p, Text) or p.text.strip() for p in parts):
            raise InvalidInput(place, "must not be empty")
        self._close()
        self._said.append(Message(Role.USER, parts))

    def _part(self, part: object, place: str) -> Part:
        match part:
            case {"type": "input_image", "image_url": str(url), **given}:
                image = image_of(url, f"{place}.image_url", self._remote)
                return looked_at(image, given.get("detail"), f"{place}.detail")
            case {"type": "input_image"}:
                problem = "must be a URL; files of an agent are not named here"
                raise InvalidInput(f"{place}.image_url", problem)
            case {"type": "input_file", **given}:
                return file_of({str(name): each for name, each in given.items()}, place)
            case {"type": "input_text", "text": str(text)}:
                return Text(text)
        problem = "must be an input_text, input_image or input_file, with what it has"
        raise InvalidInput(place, problem)

    def _say(self, item: JsonObject, place: str) -> None:
        text = text_of(item.get("content"), place)
        self._begin_answer()
        if text:
            self._answer.append(Text(text))

    def _call(self, item: JsonObject, place: str) -> None:
        use = _use(item, place)
        if turn_of(use.id) and use.id in self._open and not self._answered(use.id):
            # One of several of a turn that was told as a whole, behind an output.
            return
        self._begin_answer()
        if use.id in self._asked:
            raise InvalidInput(f"{place}.call_id", "two calls have the same")
        self._asked.add(use.id)
        self._answer.append(use)

    def _output(self, item: JsonObject, place: str) -> None:
        self._close_answer()
        id_ = filled(item.get("call_id"), f"{place}.call_id")
        use = self._open.get(id_)
        if use is None or self._answered(id_):
            problem = "answers no open call of the assistant's before it"
            raise InvalidInput(f"{place}.call_id", problem)
        text, media = self._result(item.get("output"), f"{place}.output")
        output = ToolOutput(use.id, use.name, text, media=media)
        self._outputs[use.id] = output

    def _result(self, output: object, place: str) -> tuple[str, tuple[Medium, ...]]:
        """Read what came of a call: all of it in words, and the media beside them."""
        if isinstance(output, str):
            return output, ()
        words: list[str] = []
        media: list[Medium] = []
        for at, part in enumerate(taken(output, list, place)):
            where = f"{place}.{at}"
            read = (
                Text(whole_text(part, where))
                if isinstance(part, Mapping) and "text" in str(part.get("type"))
                else self._part(part, where)
            )
            if isinstance(read, Text):
                words.append(read.text)
            elif isinstance(read, Image):
                media.append(read)
                words.append(f"[{read.media_type}]")
            else:
                raise InvalidInput(where, "must be an input_text or input_image")
        return "\n".join(words), tuple(media)

    def _pass(self, item: JsonObject, place: str) -> None:
        """Pass over what a model thought: only its own vendor could read it."""

    def _answered(self, call_id: str) -> bool:
        return self._open[call_id].id in self._outputs

    def _begin_answer(self) -> None:
        if not self._answer:
            self._close_calls()

    def _close(self) -> None:
        self._close_answer()
        self._close_calls()

    def _close_answer(self) -> None:
        """Put together what an assistant has said and called in a row."""
        parts, self._answer, self._asked = tuple(self._answer), [], set()
        if not parts:
            return
        uses = [part for part in parts if isinstance(part, ToolUse)]
        kept = self._inner.get(turn_of(uses[0].id)) if uses else None
        if kept is not None:
            self._said += kept.said
            self._open, self._own = kept.calls, kept.outputs
            return
        self._open = {use.id: use for use in uses}
        self._said.append(Message(Role.ASSISTANT, parts))

    def _close_calls(self) -> None:
        """Put the results together, those of the agent's own tools first."""
        if outputs := (*self._own, *self._outputs.values()):
            self._said.append(Message(Role.TOOL, outputs))
            self._own, self._outputs = (), {}
        self._open = {}

    _ROLES: ClassVar[Mapping[str, Read]] = {
        "user": _ask,
        "assistant": _say,
        "system": _instruct,
        "developer": _instruct,
    }
    _READS: ClassVar[Mapping[str, Read]] = {
        "function_call": _call,
        "function_call_output": _output,
        "reasoning": _pass,
    }


def _use(item: JsonObject, place: str) -> ToolUse:
    id_ = filled(item.get("call_id"), f"{place}.call_id")
    name = filled(item.get("name"), f"{place}.name")
    text = taken(item.get("arguments"), str, f"{place}.arguments")
    try:
        arguments: Any = json.loads(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        problem = "must be an object of JSON, as a text"
        raise InvalidInput(f"{place}.arguments", problem)
    return ToolUse(id_, name, arguments)
