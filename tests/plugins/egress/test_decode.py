"""Coded bodies: undone exactly, in bounded steps, or refused."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from agenthost import EgressPolicy, OutcomeUnknown, TooLarge
from agenthost_egress.client import AiohttpEgress
from agenthost_egress.decode import STEP, Decoder, UnknownCoding
from hypothesis import given
from hypothesis import strategies as st

from .wire import Wire, always, answer


def raw_deflate(data: bytes) -> bytes:
    coder = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return coder.compress(data) + coder.flush()


CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "": bytes,
    "identity": bytes,
}


@pytest.mark.parametrize("coding", CODERS)
@given(data=st.binary(max_size=5000), cut=st.integers(1, 400), times=st.integers(1, 99))
def test_what_was_coded_comes_back(
    coding: str, data: bytes, cut: int, times: int
) -> None:
    whole = data * times
    wire = CODERS[coding](whole)
    decoder = Decoder(coding)
    chunks = [wire[i : i + cut] for i in range(0, len(wire), cut)]
    pieces = [piece for chunk in chunks for piece in decoder.feed(chunk)]
    decoder.finish()
    assert b"".join(pieces) == whole
    assert all(len(piece) <= STEP for piece in pieces)


def test_raw_deflate_is_understood_too() -> None:
    decoder = Decoder("deflate")
    assert b"".join(decoder.feed(raw_deflate(b"text" * 999))) == b"text" * 999
    decoder.finish()


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress"])
def test_codings_nobody_asked_for_are_refused(coding: str) -> None:
    with pytest.raises(UnknownCoding):
        Decoder(coding)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_bomb_stops_at_the_cap(egress: AiohttpEgress, coding: str) -> None:
    bomb = CODERS[coding](bytes(50_000_000))
    policy = EgressPolicy("bomb", timeout=5, max_bytes=100_000)
    async with Wire(always(answer(bomb, content_encoding=coding))) as wire:
        with pytest.raises(TooLarge):
            await egress.client(policy).get(wire.url)


@pytest.mark.parametrize("coding", ["br", "gzip, br", "gzip, gzip"])
async def test_an_unasked_coding_is_no_answer(
    egress: AiohttpEgress, coding: str
) -> None:
    async with Wire(always(answer(b"x", content_encoding=coding))) as wire:
        with pytest.raises(OutcomeUnknown):
            await egress.client(EgressPolicy("c", timeout=5)).get(wire.url)


# Without a time in it, the name of the case is the same in every process.
DAMAGED = gzip.compress(b"a" * 9999, mtime=0)[:-9]


@pytest.mark.parametrize("data", [DAMAGED, b"not gzip at all"], ids=["cut", "other"])
async def test_a_damaged_body_is_no_answer(egress: AiohttpEgress, data: bytes) -> None:
    async with Wire(always(answer(data, content_encoding="gzip"))) as wire:
        with pytest.raises(OutcomeUnknown):
            await egress.client(EgressPolicy("c", timeout=5)).get(wire.url)


async def test_a_decoded_answer_no_longer_says_that_it_is_coded(
    egress: AiohttpEgress,
) -> None:
    data = gzip.compress(b"plain")
    async with Wire(always(answer(data, content_encoding="gzip"))) as wire:
        response = await egress.client(EgressPolicy("c", timeout=5)).get(wire.url)
    assert response.text == "plain"
    assert "content-encoding" not in response.headers
    assert "content-length" not in response.headers


async def test_an_empty_answer_to_head_may_claim_a_coding(
    egress: AiohttpEgress,
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n"
    async with Wire(always(head)) as wire:
        response = await egress.client(EgressPolicy("c", timeout=5)).head(wire.url)
    assert response.content == b""
