"""Redirects: followed by hand, a few, and without what belongs to the first host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from agenthost import (
    CHECK_HOST,
    FINAL_URL,
    AgentHostError,
    Denied,
    EgressPolicy,
    OutcomeUnknown,
)
from agenthost_egress.client import AiohttpEgress

from .wire import Heard, Script, Wire, always, answer

FOLLOW = EgressPolicy("follow", timeout=5, max_redirects=2)
CODES = [301, 302, 303, 307, 308]


def to(place: str, code: int = 302) -> bytes:
    return answer(b"", f"{code} Moved", Location=place)


def once(place: str, code: int) -> Script:
    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        first = " /start " in heard.line
        writer.write(to(place, code) if first else answer(b"end"))

    return script


@pytest.mark.parametrize("code", CODES)
async def test_the_method_and_body_follow_the_standard(
    egress: AiohttpEgress, code: int
) -> None:
    async with Wire(once("/end", code)) as wire:
        response = await egress.client(FOLLOW).post(
            f"{wire.url}/start", content=b"body", headers={"X-Key": "k"}
        )
    kept = code in (307, 308)
    second = wire.heard[1]
    assert second.line.startswith("POST /end" if kept else "GET /end")
    assert second.body == (b"body" if kept else b"")
    assert second.header("x-key") == "k"
    assert response.text == "end"
    assert response.extensions[FINAL_URL] == f"{wire.url}/end"


@pytest.mark.parametrize("code", CODES)
async def test_without_leave_a_redirect_is_handed_back(
    egress: AiohttpEgress, code: int
) -> None:
    async with Wire(always(to("/end", code))) as wire:
        response = await egress.client(EgressPolicy("no", timeout=5)).get(wire.url)
    assert response.status_code == code
    assert len(wire.heard) == 1


async def test_too_many_redirects_end(egress: AiohttpEgress) -> None:
    async with Wire(always(to("/again"))) as wire:
        with pytest.raises(httpx.TooManyRedirects):
            await egress.client(FOLLOW).get(wire.url)
    assert len(wire.heard) == 3


async def test_a_stranger_gets_no_header_of_ours(egress: AiohttpEgress) -> None:
    secret = {"Authorization": "Bearer s", "X-Api-Key": "s", "Cookie": "s=1"}
    async with (
        Wire(always(answer())) as stranger,
        Wire(always(to(stranger.url, 307))) as wire,
    ):
        await egress.client(FOLLOW).post(wire.url, headers=secret, content=b"b")
    names = {name.lower() for name, _ in stranger.heard[0].headers}
    assert names == {
        "host",
        "accept",
        "accept-encoding",
        "user-agent",
        "content-length",
    }


@pytest.mark.parametrize(
    "place",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://x",
        "http://[::1",
        "http://a b/",
        "javascript:1",
        "http://u:p@127.0.0.1/",
        "http://127.0.0.1:99999/",
    ],
)
async def test_a_place_that_is_no_plain_url_ends_the_request(
    egress: AiohttpEgress, place: str
) -> None:
    async with Wire(once(place, 302)) as wire:
        with pytest.raises(AgentHostError):
            await egress.client(FOLLOW).get(f"{wire.url}/start")
    assert len(wire.heard) == 1


async def test_a_body_that_cannot_be_sent_twice_is_not_redirected(
    egress: AiohttpEgress,
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"

    async with Wire(once("/end", 307)) as wire:
        with pytest.raises(OutcomeUnknown):
            await egress.client(FOLLOW).post(f"{wire.url}/start", content=pieces())
    assert len(wire.heard) == 1


async def test_a_caller_may_judge_the_host_of_every_hop(egress: AiohttpEgress) -> None:
    asked: list[str] = []

    def check(host: str) -> None:
        asked.append(host)
        if host == "127.0.0.2":
            raise Denied("not this one")

    async with (
        Wire(always(answer()), host="127.0.0.2") as stranger,
        Wire(always(to(stranger.url))) as wire,
    ):
        with pytest.raises(Denied, match="not this one"):
            await egress.client(FOLLOW).get(wire.url, extensions={CHECK_HOST: check})
    assert asked == ["127.0.0.1", "127.0.0.2"]
    assert stranger.connections == 0
