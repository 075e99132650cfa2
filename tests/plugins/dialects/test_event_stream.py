"""Frames arrive whole whatever the chunks, and damage is found."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise

import pytest
from agenthost import ProviderError, ProviderFault
from agenthost.testing.simulators.bedrock import frame
from agenthost_dialects.event_stream import EventStreamFrames, Frame
from hypothesis import given, settings
from hypothesis import strategies as st

HEADERS = st.dictionaries(
    st.text("abc:-", min_size=1, max_size=8), st.text(max_size=8), max_size=3
)
FRAMES = st.lists(st.builds(Frame, HEADERS, st.binary(max_size=40)), max_size=4)


def read(chunks: list[bytes]) -> list[Frame]:
    frames = EventStreamFrames("acme")
    found = [item for chunk in chunks for item in frames.feed(chunk)]
    return [*found, *frames.close()]


@given(FRAMES, st.lists(st.integers(0, 1000), max_size=6))
def test_chunks_may_break_anywhere(frames: list[Frame], cuts: list[int]) -> None:
    body = b"".join(frame(item.headers, item.payload) for item in frames)
    places = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    assert read([body[a:b] for a, b in pairwise(places)]) == frames
    assert read([bytes([byte]) for byte in body]) == frames


@settings(max_examples=60)
@given(st.data())
def test_a_changed_bit_is_found(data: st.DataObject) -> None:
    body = bytearray(frame({":event-type": "x"}, b'{"a": 1}'))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ProviderError) as caught:
        read([bytes(body)])
    assert caught.value.fault is ProviderFault.MALFORMED


def raw(headers: bytes, length: int | None = None) -> bytes:
    """Write a frame with right checksums around any bytes."""
    size = len(headers) if length is None else length
    lengths = struct.pack(">II", 16 + len(headers), size)
    whole = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers
    return whole + struct.pack(">I", zlib.crc32(whole))


def test_headers_of_every_type_are_passed_over() -> None:
    values = {0: b"", 1: b"", 2: b"a", 3: b"ab", 4: b"abcd", 5: b"a" * 8, 8: b"a" * 8}
    values |= {6: b"\0\3abc", 9: b"a" * 16, 7: b"\0\2hi"}
    headers = b"".join(b"\1n" + bytes([kind]) + v for kind, v in values.items())
    (found,) = read([raw(headers)])
    assert found.headers == {"n": "hi"}


@pytest.mark.parametrize(
    "body",
    [
        raw(b"\1n\x63"),
        raw(b"\1n\7\0\1\xff"),
        raw(b"\1n\7"),
        raw(b"\x20n"),
        raw(b"", length=9),
        struct.pack(">III", 15, 0, zlib.crc32(struct.pack(">II", 15, 0))),
        struct.pack(">III", 1 << 30, 0, zlib.crc32(struct.pack(">II", 1 << 30, 0))),
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"\0",
    ],
)
def test_broken_frames_are_malformed(body: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        read([body])
    assert caught.value.fault is ProviderFault.MALFORMED
