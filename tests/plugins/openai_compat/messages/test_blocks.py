"""Pictures and documents: by value, and fetched within bounds."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from agenthost import UNTRUSTED, File, Image, InvalidInput, Text
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_openai_compat.messages.blocks import parts_of

from .asking import PATH, answered, ask, asked, user

LOOK = {"type": "text", "text": "look"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\npixel").decode()
PDF = base64.b64encode(b"%PDF-1.7 plan").decode()
FOUND = {"/pixel.png": b"\x89PNG\r\n\x1a\npixel", "/plan.pdf": b"%PDF-1.7 plan"}


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": source}


def document(*, title: Any = None, **source: Any) -> dict[str, Any]:
    return {"type": "document", "title": title, "source": source}


async def shown(daemon: RunningDaemon, *blocks: dict[str, Any]) -> tuple[Any, ...]:
    """Show blocks, and give what the model sees of them."""
    await answered(daemon, **user(LOOK, *blocks))
    first, *rest = daemon.model.requests[-1].messages[0].parts
    assert first == Text("look")
    return tuple(rest)


@pytest.mark.conformance
async def test_a_picture_comes_as_base64(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    png = image(type="base64", media_type="image/png", data=PNG)
    assert await shown(daemon, png) == (Image("image/png", PNG),)


@pytest.mark.conformance
async def test_a_document_is_handed_to_the_model(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    plan = {"type": "base64", "media_type": "application/pdf", "data": PDF}
    pdf = document(title="plan", **plan)
    about = {**pdf, "context": "of today"}
    assert parts_of(about, "", {}) == (
        Text("of today"),
        File("plan", "application/pdf", PDF),
    )
    words = document(type="text", media_type="text/plain", data="the plan")
    (text,) = await shown(daemon, words)
    assert "the plan" in text.text
    inner = [LOOK, image(type="base64", media_type="image/png", data=PNG)]
    for content, parts in (
        ("so", (Text("so"),)),
        (inner, (Text("look"), Image("image/png", PNG))),
    ):
        assert parts_of(document(type="content", content=content), "", {}) == parts


@pytest.mark.conformance
async def test_a_search_result_is_told_in_words(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    found = {
        "type": "search_result",
        "title": "A",
        "source": "https://a",
        "content": [LOOK],
    }
    assert await shown(daemon, found) == (Text("[search result: A, https://a]\nlook"),)


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    (image(type="base64", media_type="image/png", data=""), "source.data"),
    (image(type="base64", media_type="image/png", data="%%%"), "source.data"),
    (image(type="base64", media_type="image/svg+xml", data=PNG), "source.media_type"),
    (image(type="file", file_id="file_1"), "source: files are not known here"),
    (image(type="url", url="file:///etc/passwd"), "source.url"),
    (image(type="url"), "source"),
    ({"type": "image"}, "source"),
    (document(type="base64", media_type="image/png", data=PNG), "source"),
    (document(type="base64", media_type="application/pdf", data="?"), "source.data"),
    (document(type="text", data=""), "source.data"),
    (document(type="text", data="x", title=5), "title"),
    (document(type="content", content=[document(type="text", data="x")]), "source"),
    (document(type="content", content=5), "source.content"),
    (document(type="url", url="ftp://a"), "source.url"),
    ({"type": "search_result", "title": "A"}, "source"),
    ({"type": "container_upload", "file_id": "x"}, "type"),
)


def test_what_is_no_picture_or_document_is_refused() -> None:
    for block, field in BAD:
        with pytest.raises(InvalidInput) as refused:
            parts_of(block, "here", {})
        assert refused.value.message.startswith(f"here.{field}")


async def show(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve all as if it were pages."""
    request = await reader.readuntil(b"\r\n\r\n")
    body = FOUND.get(request.split()[1].decode(), b"<html>")
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n"
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


async def test_pictures_and_documents_of_the_web_are_fetched(
    daemons: Daemons, site: str
) -> None:
    daemon = await daemons.start(config='[openai]\nimage_hosts = ["127.0.0.1"]\n')
    await daemon.agent("ada")
    png = image(type="url", url=f"{site}/pixel.png")
    pdf = document(title="plan", type="url", url=f"{site}/plan.pdf")
    assert await shown(daemon, png, pdf, png) == (
        Image("image/png", PNG),
        Text("\n[file plan: scripted-model takes no application/pdf]\n"),
        Image("image/png", PNG),
    )
    for block in (
        image(type="url", url=f"{site}/plan.pdf"),
        document(type="url", url=f"{site}/pixel.png"),
        document(type="url", url=f"{site}/page"),
    ):
        answer = await ask(daemon, **user(LOOK, block))
        assert answer.status_code == 400
        where = "messages.0.content.1.source.url: what is there is none of"
        assert answer.json()["error"]["message"].startswith(where)


@pytest.mark.conformance
async def test_what_was_fetched_labels_the_turn(daemons: Daemons, site: str) -> None:
    daemon = await daemons.start(config='[openai]\nimage_hosts = ["127.0.0.1"]\n')
    await daemon.agent("ada")
    pixel = image(type="url", url=f"{site}/pixel.png")
    for number, (block, labels) in enumerate(((LOOK, set()), (pixel, UNTRUSTED))):
        headers = {"Idempotency-Key": f"key {number}"}
        answer = await daemon.http.post(
            PATH, json=asked(**user(block)), headers=headers
        )
        record = await daemon.daemon.journal.find(answer.json()["id"][4:])
        assert record is not None
        assert record.result.labels == labels


async def test_nothing_of_this_machine_is_fetched(
    daemon: RunningDaemon, site: str
) -> None:
    await daemon.agent("ada")
    for block in (
        image(type="url", url=f"{site}/pixel.png"),
        document(type="url", url=f"{site}/plan.pdf"),
    ):
        answer = await ask(daemon, **user(block))
        assert answer.status_code == 403
        assert answer.json()["error"]["type"] == "permission_error"
    assert daemon.model.requests == []


@pytest.mark.conformance
async def test_few_things_are_fetched_at_once(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    urls = [f"http://127.0.0.1:9/{n}" for n in range(6)]
    blocks = [made(type="url", url=url) for url in urls for made in (image, document)]
    answer = await ask(daemon, **user(*blocks))
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("messages: at most 10")
