"""Pictures and documents: by value, and fetched within bounds."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from agenthost import Image, Text
from agenthost.testing.daemons import Daemons, RunningDaemon

from .test_chat import ask

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
ENCODED = base64.b64encode(PIXEL).decode()
DATA = f"data:image/png;base64,{ENCODED}"


def showing(url: Any) -> dict[str, Any]:
    look = {"type": "text", "text": "look"}
    parts = [look, {"type": "image_url", "image_url": {"url": url}}]
    return {"messages": [{"role": "user", "content": parts}]}


def handing(data: Any, name: str = "a.txt") -> dict[str, Any]:
    file = {"file_data": data, "filename": name}
    return {"messages": [{"role": "user", "content": [{"type": "file", "file": file}]}]}


async def test_a_picture_comes_in_a_data_url(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    assert (await ask(daemon, **showing(DATA))).status_code == 200
    parts = daemon.model.requests[0].messages[0].parts
    assert parts == (Text("look"), Image("image/png", ENCODED))


async def test_a_document_is_handed_to_the_model(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    data = base64.b64encode(b"the plan").decode()
    answer = await ask(daemon, **handing(f"data:text/plain;base64,{data}", "plan.txt"))
    assert answer.status_code == 200
    assert "[file plan.txt]\nthe plan\n" in daemon.model.requests[0].messages[0].text


NONE = (
    showing("data:image/png;base64,"),
    showing("data:image/png;base64,%%%"),
    showing("data:image/png,plain"),
    showing("data:image/svg+xml;base64,PHN2Zz4="),
    showing("data:text/html;base64,PHN2Zz4="),
    showing("file:///etc/passwd"),
    showing("not a url"),
    showing("http://"),
    showing(5),
    handing("data:application/zip;base64,UEsDBA=="),
    handing(5),
    handing("plan.txt"),
)


async def test_what_is_no_picture_or_document_is_refused(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for body in NONE:
        answer = await ask(daemon, **body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["param"].startswith("messages.0.content.")


FOUND = {
    "/pixel.png": PIXEL,
    "/page": b"<html>",
    "/huge.png": PIXEL + b"\0" * (11 * 1024 * 1024),
}


async def show(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve pictures, and things that are none, all as if they were pages."""
    request = await reader.readuntil(b"\r\n\r\n")
    body = FOUND.get(request.split()[1].decode())
    status, body = (404, b"") if body is None else (200, body)
    head = f"HTTP/1.1 {status} OK\r\ncontent-type: text/html\r\nconnection: close\r\n"
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    with suppress(ConnectionError):
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def site() -> AsyncIterator[str]:
    async with await asyncio.start_server(show, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"


@pytest.mark.setting("openai.image_hosts")
async def test_a_picture_of_the_web_is_fetched(daemons: Daemons, site: str) -> None:
    daemon = await daemons.start(config='[openai]\nimage_hosts = ["127.0.0.1"]\n')
    await daemon.agent("ada")
    answer = await ask(daemon, **showing(f"{site}/pixel.png"))
    assert answer.status_code == 200, answer.text
    assert Image("image/png", ENCODED) in daemon.model.requests[0].messages[0].parts
    for path in ("/page", "/huge.png", "/nothing"):
        answer = await ask(daemon, **showing(site + path))
        assert answer.status_code == 400, answer.text
        assert answer.json()["param"] == "messages.0.content.1.image_url.url"


async def test_a_picture_of_this_machine_is_not_fetched(
    daemon: RunningDaemon, site: str
) -> None:
    await daemon.agent("ada")
    answer = await ask(daemon, **showing(f"{site}/pixel.png"))
    assert (answer.status_code, answer.json()["code"]) == (403, "blocked")
    assert daemon.model.requests == []


async def test_few_pictures_are_fetched_at_once(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    image = "http://127.0.0.1:9/{}.png"
    parts = [
        {"type": "image_url", "image_url": {"url": image.format(n)}} for n in range(11)
    ]
    answer = await ask(daemon, messages=[{"role": "user", "content": parts}])
    assert (answer.status_code, answer.json()["param"]) == (400, "messages")
