"""Pictures and documents that messages bring: in data URLs, or to be fetched."""

from __future__ import annotations

import asyncio
import base64
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agenthost import (
    CONTEXT,
    Call,
    EgressPolicy,
    File,
    Image,
    InvalidInput,
    TooLarge,
    UpstreamUnreachable,
)

from .settings import OpenAISection

if TYPE_CHECKING:
    import httpx

FETCHED = 10
"""Pictures that one request may have fetched."""
FETCHED_BYTES = 10 * 1024 * 1024
FETCH_SECONDS = 20.0
REDIRECTS = 3
Kinds = Mapping[str, tuple[bytes, ...]]
"""Media types, each with how what is of it begins."""
PICTURES: Kinds = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
"""The kinds that models see."""
DETAILS = ("auto", "low", "high", "original")
TEXTS = ("application/json", "application/xml")
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.+-]+=[^;,]*)*);base64,", re.A)

BASE64 = (string.ascii_letters + string.digits + "+/").encode()
PADDINGS = (b"", b"=", b"==")
PIECE = 256 * 1024
WEB = ("http://", "https://")

Remote = Mapping[str, Image]
Wanted = tuple[str, str, Kinds]
"""A URL, where it stands in the request, and what is to be there."""
Found = tuple[str, str]
"""Its media type and its base64."""


def image_of(url: str, place: str, remote: Remote) -> Image:
    """Read a picture.

    Args:
        url: A data URL, or one of those that were fetched.
        place: Where it stands in the request.
        remote: What was fetched, by its URL.

    Raises:
        InvalidInput: It is none.
    """
    if url in remote:
        return remote[url]
    kind, data = _inline(url, place)
    if kind not in PICTURES:
        raise InvalidInput(place, f"must be one of {', '.join(PICTURES)}, not {kind!r}")
    return Image(kind, data)


def looked_at(image: Image, detail: object, place: str) -> Image:
    """Say how closely a picture is to be looked at, where the request does.

    Raises:
        InvalidInput: It says so in no word that is known.
    """
    if detail is None:
        return image
    if not isinstance(detail, str) or detail not in DETAILS:
        raise InvalidInput(place, f"must be one of {', '.join(DETAILS)}")
    return replace(image, detail=detail)


def file_of(given: Mapping[str, Any], place: str) -> File:
    """Read a document.

    Raises:
        InvalidInput: It is none, or of a kind that no model takes.
    """
    url = given.get("file_data")
    if not isinstance(url, str):
        problem = "must be a data URL; files of an agent are not named here"
        raise InvalidInput(f"{place}.file_data", problem)
    kind, data = _inline(url, f"{place}.file_data")
    readable = kind.startswith("text/") or kind in {*TEXTS, *PICTURES}
    if not readable and kind != "application/pdf":
        problem = f"must be a PDF, a text or a picture, not {kind!r}"
        raise InvalidInput(f"{place}.file_data", problem)
    name = given.get("filename")
    named = name if isinstance(name, str) and name.isprintable() else ""
    media_type = "text/plain" if kind in TEXTS else kind
    return File(named[:256] or "file", media_type, data)


def _inline(url: str, place: str) -> tuple[str, str]:
    """Take a data URL apart: its type and its base64."""
    begin = _DATA.match(url)
    if begin is None:
        raise InvalidInput(place, "must be data:<type>;base64,<data>")
    data = url[begin.end() :]
    check_base64(data, place)
    return (begin[1] or "text/plain").lower(), data


def check_base64(data: str, place: str) -> None:
    """Look through base64.

    Raises:
        InvalidInput: It is empty, or none.
    """
    # Looked through here: a vendor would answer for it in words of its own. To leave
    # out what is fine takes a fifth of what decoding megabytes does; piece by piece, so
    # that other threads come in between.
    pieces = (data[at : at + PIECE] for at in range(0, len(data), PIECE))
    left = (each.encode("ascii", "replace").translate(None, BASE64) for each in pieces)
    padding = b"".join(left)
    whole = len(data) % 4 == 0 and padding in PADDINGS
    if not data or not whole or not data.endswith(padding.decode()):
        raise InvalidInput(place, "its base64 is empty or cannot be read")


async def fetched(call: Call, messages: Sequence[Mapping[str, Any]]) -> Remote:
    """Fetch the pictures of the web that messages name, through the guards of egress.

    Raises:
        InvalidInput: They are too many, or one is no picture.
        AgentHostError: One cannot be reached, is too large, or a guard refuses it.
    """
    return await fetched_of(call, _remote(messages), "messages")


async def fetched_of(
    call: Call, named: Iterable[tuple[str, str]], field: str
) -> Remote:
    """Fetch pictures.

    Args:
        call: Who asks for them.
        named: Their URLs, each with where it stands in the request.
        field: What of the request names them all.

    Raises:
        InvalidInput: They are too many, or one is no picture.
        AgentHostError: One cannot be reached, is too large, or a guard refuses it.
    """
    places: dict[str, str] = {}
    for url, place in named:
        places.setdefault(url, place)
    wanted = [(url, place, PICTURES) for url, place in places.items()]
    images = await fetched_all(call, wanted, field)
    return {url: Image(*image) for url, image in zip(places, images, strict=True)}


async def fetched_all(
    call: Call, wanted: Sequence[Wanted], field: str = "messages"
) -> Sequence[Found]:
    """Fetch what stands at some URLs, through the guards of egress.

    Args:
        call: Who asks for them.
        wanted: The URLs, each with its place and what may stand there.
        field: What of the request names them all.

    Raises:
        InvalidInput: They are too many, or one is not what is wanted.
        AgentHostError: One cannot be reached, is too large, or a guard refuses it.
    """
    if len(wanted) > FETCHED:
        raise InvalidInput(field, f"at most {FETCHED} images are fetched; use less")
    if not wanted:
        return ()
    tasks = [asyncio.create_task(_fetch(call, *each)) for each in wanted]
    try:
        return await asyncio.gather(*tasks)
    finally:
        # When one fails, nobody waits for the others.
        for task in tasks:
            task.cancel()


def is_remote(url: str) -> bool:
    """Tell whether it is to be fetched."""
    # Others hold megabytes.
    return url[: len(WEB[1])].lower().startswith(WEB)


def _remote(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list):
            continue
        for at, part in enumerate(content):
            match part:
                case {"type": "image_url", "image_url": {"url": str(url)}} if is_remote(
                    url
                ):
                    yield url, f"messages.{number}.content.{at}.image_url.url"


async def _fetch(call: Call, url: str, place: str, kinds: Kinds) -> Found:
    import httpx

    client = call.host.egress.client(_policy(call))
    try:
        answer = await client.get(url, extensions={CONTEXT: call.context})
    except httpx.HTTPError as error:
        raise UpstreamUnreachable(f"{place}: the image cannot be fetched") from error
    except (httpx.InvalidURL, InvalidInput, ValueError, TypeError) as error:
        raise InvalidInput(place, "the URL is not valid") from error
    except TooLarge:
        problem = f"the image is over {FETCHED_BYTES} bytes"
        raise InvalidInput(place, problem) from None
    kind = _kind_of(answer, place, kinds)
    return kind, (await asyncio.to_thread(base64.b64encode, answer.content)).decode()


def _kind_of(answer: httpx.Response, place: str, kinds: Kinds) -> str:
    """Tell of what kind it is by how it begins, whatever it is called."""
    if not answer.is_success:
        raise InvalidInput(
            place, f"fetching the image was answered {answer.status_code}"
        )
    for kind, begins in kinds.items():
        if answer.content.startswith(begins):
            return kind
    raise InvalidInput(place, f"what is there is none of {', '.join(kinds)}")


def _policy(call: Call) -> EgressPolicy:
    return EgressPolicy(
        "openai_images",
        allowed_hosts=frozenset(call.host.settings(OpenAISection).image_hosts),
        timeout=FETCH_SECONDS / 2,
        total_timeout=FETCH_SECONDS,
        max_bytes=FETCHED_BYTES,
        max_redirects=REDIRECTS,
    )
