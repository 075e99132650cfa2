"""Blocks of content that a user's message, or the result of a tool, brings."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agenthost import Call, File, Image, InvalidInput, JsonObject, Part, Text

from ..checks import filled, taken
from ..media import PICTURES, Found, Kinds, check_base64, fetched_all, is_remote

PDF: Kinds = {"application/pdf": (b"%PDF-",)}
BLOCK_DEPTH = 3
"""Points in the place of a block of a message: ``messages.0.content.0``."""
_FETCHABLE: Mapping[str, Kinds] = {"image": PICTURES, "document": PDF}

Fetched = Mapping[tuple[str, str], Found]
"""What was fetched, by the type of its block and its URL."""


def parts_of(block: object, place: str, fetched: Fetched) -> tuple[Part, ...]:
    """Read a block.

    Args:
        block: As it came.
        place: Where it stands in the request.
        fetched: What its URLs lead to.

    Raises:
        InvalidInput: It is none, or of a type that is not served.
    """
    given = taken(block, dict, place)
    kind = given.get("type")
    read = _READS.get(kind) if isinstance(kind, str) else None
    if read is None:
        known = ", ".join(_READS)
        raise InvalidInput(
            f"{place}.type", f"{_shown(kind)} is not served; {known} are"
        )
    return read(given, place, fetched)


def text_of(content: object, place: str) -> str:
    """Read content that has words alone."""
    if isinstance(content, str):
        return content
    words: list[str] = []
    for at, block in enumerate(taken(content, list, place)):
        match block:
            case {"type": "text", "text": str(text)}:
                words.append(text)
            case _:
                raise InvalidInput(f"{place}.{at}", "must be of type text")
    return "\n\n".join(words)


async def fetch(call: Call, messages: Sequence[JsonObject]) -> Fetched:
    """Fetch the pictures and documents of the web that messages name.

    Raises:
        InvalidInput: They are too many, or one is not what its block says.
        AgentHostError: One cannot be reached, is too large, or a guard refuses it.
    """
    places = remote_in(messages)
    if not places:
        return {}
    wanted = [(url, place, _FETCHABLE[kind]) for (kind, url), place in places.items()]
    return dict(zip(places, await fetched_all(call, wanted), strict=True))


def remote_in(messages: Sequence[JsonObject]) -> Mapping[tuple[str, str], str]:
    """Find the URLs in messages: type of the block and URL, and where it stands."""
    places: dict[tuple[str, str], str] = {}
    for number, message in enumerate(messages):
        for block, place in _nested(
            message.get("content"), f"messages.{number}.content"
        ):
            match block:
                case {
                    "type": "image" | "document" as kind,
                    "source": {"type": "url", "url": str(url)},
                } if is_remote(url):
                    places.setdefault((kind, url), f"{place}.source.url")
    return places


def cites(messages: Sequence[JsonObject]) -> bool:
    """Tell whether the answer is to cite documents, which are PDFs.

    Raises:
        InvalidInput: It is to cite others, or only some of them.
    """
    places: dict[bool, str] = {}
    for number, message in enumerate(messages):
        content, place = message.get("content"), f"messages.{number}.content"
        for block, where in _nested(content, place):
            match block:
                case {
                    "type": "document" | "search_result",
                    "citations": {"enabled": True},
                }:
                    _check_cited(block, where)
                    places.setdefault(True, where)
                case {"type": "document"}:
                    places.setdefault(False, f"{where}.citations")
    if len(places) > 1:
        raise InvalidInput(places[False], "must be enabled for all documents or none")
    return True in places


def _check_cited(block: object, place: str) -> None:
    """Refuse what reaches a model as words: nobody would cite it."""
    match block:
        case {"type": "document", "source": {"type": "base64" | "url"}}:
            # In the result of a tool it would stand beneath another block.
            if place.count(".") == BLOCK_DEPTH:
                return
    raise InvalidInput(f"{place}.citations", "is served for PDFs of messages alone")


def _nested(content: object, place: str) -> Iterator[tuple[object, str]]:
    for at, block in enumerate(content if isinstance(content, list) else ()):
        yield block, f"{place}.{at}"
        match block:
            case {"type": "tool_result", "content": list(inner)}:
                for within, each in enumerate(inner):
                    yield each, f"{place}.{at}.content.{within}"


def _text(block: JsonObject, place: str, _: Fetched) -> tuple[Part, ...]:
    text = taken(block.get("text"), str, f"{place}.text")
    return (Text(text),) if text else ()


def _image(block: JsonObject, place: str, fetched: Fetched) -> tuple[Part, ...]:
    match block.get("source"):
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            if kind not in PICTURES:
                problem = f"must be one of {', '.join(PICTURES)}, not {kind[:100]!r}"
                raise InvalidInput(f"{place}.source.media_type", problem)
            check_base64(data, f"{place}.source.data")
            return (Image(kind, data),)
        case {"type": "url", "url": str(url)}:
            return (Image(*_found("image", url, place, fetched)),)
        case source:
            raise _no_source(source, place, "base64 or url")


def _document(block: JsonObject, place: str, fetched: Fetched) -> tuple[Part, ...]:
    title, context = _said(block, "title", place), _said(block, "context", place)
    about = (Text(context),) if context else ()
    name = title[:256] if title.isprintable() and title else "document"
    match block.get("source"):
        case {"type": "base64", "media_type": "application/pdf", "data": str(data)}:
            check_base64(data, f"{place}.source.data")
            return (*about, File(name, "application/pdf", data))
        case {"type": "text", "data": str(data)}:
            return (*about, File(name, "text/plain", _encoded(data, place)))
        case {"type": "url", "url": str(url)}:
            return (*about, File(name, *_found("document", url, place, fetched)))
        case {"type": "content", "content": content}:
            where = f"{place}.source.content"
            return (*about, *_inside(content, where, fetched))
        case source:
            raise _no_source(source, place, "base64 (a PDF), text, url or content")


def _encoded(text: str, place: str) -> str:
    filled(text, f"{place}.source.data")
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _inside(content: object, place: str, fetched: Fetched) -> tuple[Part, ...]:
    """Read the content of a document that is made of blocks."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    parts: tuple[Part, ...] = ()
    for at, block in enumerate(taken(content, list, place)):
        match block:
            case {"type": "text" | "image" as kind}:
                parts += _READS[kind](block, f"{place}.{at}", fetched)
            case _:
                raise InvalidInput(f"{place}.{at}", "must be of type text or image")
    return parts


def _search_result(block: JsonObject, place: str, _: Fetched) -> tuple[Part, ...]:
    title = taken(block.get("title"), str, f"{place}.title")
    source = taken(block.get("source"), str, f"{place}.source")
    text = text_of(block.get("content"), f"{place}.content")
    return (Text(f"[search result: {title}, {source}]\n{text}"),)


def _found(kind: str, url: str, place: str, fetched: Fetched) -> Found:
    if (kind, url) not in fetched:
        raise InvalidInput(f"{place}.source.url", "must begin with http:// or https://")
    return fetched[kind, url]


def _said(block: JsonObject, name: str, place: str) -> str:
    told = block.get(name)
    return "" if told is None else taken(told, str, f"{place}.{name}")


def _no_source(source: object, place: str, served: str) -> InvalidInput:
    match source:
        case {"type": "file"}:
            problem = "files are not known here; send what is in it"
        case _:
            problem = f"must be of type {served}, with what belongs to it"
    return InvalidInput(f"{place}.source", problem)


def _shown(kind: object) -> str:
    return repr(kind[:100]) if isinstance(kind, str) else "a block without a type"


_READS: Mapping[str, Callable[[dict[str, Any], str, Fetched], tuple[Part, ...]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
}
