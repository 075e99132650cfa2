"""Pictures and documents that messages bring: in data URLs, or to be fetched."""

from __future__ import annotations

import asyncio
import base64
import re
import string
from collections.abc import Iterator, Mapping, Sequence
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
PICTURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
"""The kinds that models see, with how they begin."""
TEXTS = ("application/json", "application/xml")
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?((?:;[\w.+-]+=[^;,]*)*);base64,", re.A)

BASE64 = (string.ascii_letters + string.digits + "+/").encode()
PADDINGS = (b"", b"=", b"==")

Remote = Mapping[str, Image]


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
    # Looked through here: a vendor would answer for it in words of its own. To leave
    # out what is fine takes a fifth of what decoding megabytes does.
    padding = data.encode("ascii", "replace").translate(None, BASE64)
    whole = len(data) % 4 == 0 and padding in PADDINGS
    if not data or not whole or not data.endswith(padding.decode()):
        raise InvalidInput(place, "its base64 is empty or cannot be read")
    return (begin[1] or "text/plain").lower(), data


async def fetched(call: Call, messages: Sequence[Mapping[str, Any]]) -> Remote:
    """Fetch the pictures of the web that messages name, through the guards of egress.

    Raises:
        InvalidInput: They are too many, or one is no picture.
        AgentHostError: One cannot be reached, is too large, or a guard refuses it.
    """
    places: dict[str, str] = {}
    for url, place in _remote(messages):
        places.setdefault(url, place)
    if not places:
        return {}
    if len(places) > FETCHED:
        raise InvalidInput(
            "messages", f"at most {FETCHED} images are fetched; use less"
        )
    tasks = [asyncio.create_task(_fetch(call, *each)) for each in places.items()]
    try:
        images = await asyncio.gather(*tasks)
    finally:
        # When one fails, nobody waits for the others.
        for task in tasks:
            task.cancel()
    return dict(zip(places, images, strict=True))


def _remote(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for number, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list):
            continue
        for at, part in enumerate(content):
            match part:
                case {"type": "image_url", "image_url": {"url": str(url)}} if (
                    url.lower().startswith(("http://", "https://"))
                ):
                    yield url, f"messages.{number}.content.{at}.image_url.url"


async def _fetch(call: Call, url: str, place: str) -> Image:
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
    return Image(
        _kind_of(answer, place),
        (await asyncio.to_thread(base64.b64encode, answer.content)).decode(),
    )


def _kind_of(answer: httpx.Response, place: str) -> str:
    """Tell what kind of picture it is by how it begins, whatever it is called."""
    if not answer.is_success:
        raise InvalidInput(
            place, f"fetching the image was answered {answer.status_code}"
        )
    for kind, begins in PICTURES.items():
        if answer.content.startswith(begins):
            return kind
    raise InvalidInput(place, f"what is there is none of {', '.join(PICTURES)}")


def _policy(call: Call) -> EgressPolicy:
    return EgressPolicy(
        "openai_images",
        allowed_hosts=frozenset(call.host.settings(OpenAISection).image_hosts),
        timeout=FETCH_SECONDS / 2,
        total_timeout=FETCH_SECONDS,
        max_bytes=FETCHED_BYTES,
        max_redirects=REDIRECTS,
    )
