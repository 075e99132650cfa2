"""The items of a request: as they are kept and listed, and where they name pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agenthost import InvalidInput, JsonObject

from ..checks import taken
from ..media import is_remote
from ..tools import turn_of

PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
}
"""How the ids of items begin, by the types that are taken."""
COMPLETED = {"status": "completed"}


def items_of(given: str | Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Write an input as items, each complete.

    Raises:
        InvalidInput: One is of no type that is taken, or there is none.
    """
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not given:
        raise InvalidInput("input", "must not be empty")
    return [_complete(item, f"input.{at}") for at, item in enumerate(given)]


def _complete(item: JsonObject, place: str) -> JsonObject:
    kind = item.get("type", "message")
    if not isinstance(kind, str) or kind not in PREFIXES:
        kinds = ", ".join(PREFIXES)
        raise InvalidInput(f"{place}.type", f"must be one of {kinds}")
    known = {name: value for name, value in item.items() if name != "id"}
    if kind != "message":
        return {**known, "type": kind, **COMPLETED}
    content = item.get("content")
    if isinstance(content, str):
        said = item.get("role") == "assistant"
        # The official clients look for annotations in all that an assistant says.
        part = {"type": "output_text", "annotations": []} if said else _INPUT
        content = [{**part, "text": content}]
    return {**known, "type": kind, "content": content, **COMPLETED}


_INPUT: JsonObject = {"type": "input_text"}


def listed(items: Sequence[JsonObject], known: str) -> list[dict[str, Any]]:
    """Give the items of a response with ids, of which it is part."""
    return [
        {"id": f"{PREFIXES[item['type']]}_{known}_in{at}", **item}
        for at, item in enumerate(items)
    ]


def remote_of(items: Sequence[JsonObject]) -> Iterator[tuple[str, str]]:
    """Name the pictures of the web, each with where it stands."""
    for number, item in enumerate(items):
        name = "content" if item["type"] == "message" else "output"
        parts = item.get(name)
        for at, part in enumerate(parts if isinstance(parts, list) else ()):
            match part:
                case {"type": "input_image", "image_url": str(url)} if is_remote(url):
                    yield url, f"input.{number}.{name}.{at}.image_url"


def parts_in(item: JsonObject) -> int:
    """Count the parts of an item, and itself."""
    content = item.get("content") or item.get("output")
    return 1 + (len(content) if isinstance(content, list) else 0)


def turns_in(items: Sequence[JsonObject]) -> Iterator[str]:
    """Name the turns that have the inner part of a call."""
    for item in items:
        match item:
            case {"type": "function_call", "call_id": str(id_)} if turn := turn_of(id_):
                yield turn


def whole_text(part: object, place: str) -> str:
    """Read a part that has words alone.

    Raises:
        InvalidInput: It is none.
    """
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return text
        case {"type": "refusal", "refusal": str(text)}:
            return text
    raise InvalidInput(place, "must be of type input_text or output_text")


def text_of(content: object, place: str) -> str:
    """Read words, in one or several parts.

    Raises:
        InvalidInput: There is something else.
    """
    if isinstance(content, str):
        return content
    parts = enumerate(taken(content, list, place))
    return "".join(whole_text(part, f"{place}.{at}") for at, part in parts)
