"""Bodies are cut the same way wherever their chunks break."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from agenthost import ProviderError, ProviderFault
from agenthost_dialects.framing import (
    MAX_LINE,
    Framing,
    JsonLines,
    Lines,
    ServerSentEvents,
    read_object,
)
from hypothesis import given, settings
from hypothesis import strategies as st

BODIES = st.lists(
    st.sampled_from([b"data: a", b"data:b", b"", b"\n", b"\r", b"\r\n", b": hi", b"x"])
).map(b"".join)


def chunked(body: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Cut the body at these places."""
    places = [0, *sorted({cut % (len(body) + 1) for cut in cuts}), len(body)]
    return [body[a:b] for a, b in pairwise(places)]


def events(framing: Framing, chunks: Iterable[bytes]) -> list[bytes]:
    """Feed the chunks and gather everything."""
    found = [event for chunk in chunks for event in framing.feed(chunk)]
    return [*found, *framing.close()]


@settings(deadline=None)
@given(BODIES, st.lists(st.integers(0, 200)))
def test_lines_do_not_depend_on_chunks(body: bytes, cuts: list[int]) -> None:
    lines = Lines("p")
    found = [line for chunk in chunked(body, cuts) for line in lines.feed(chunk)]
    found.append(lines.rest())
    assert found == [*body.splitlines(), *([b""] if ends(body) else [])]


def ends(body: bytes) -> bool:
    return not body or body.endswith((b"\n", b"\r"))


@settings(deadline=None)
@given(BODIES, st.lists(st.integers(0, 200)))
def test_events_do_not_depend_on_chunks(body: bytes, cuts: list[int]) -> None:
    whole = events(ServerSentEvents("p"), [body])
    assert events(ServerSentEvents("p"), chunked(body, cuts)) == whole


def test_events_join_their_data_lines_and_skip_comments() -> None:
    body = b": keep-alive\n\nevent: a\ndata: one\ndata:two\nid: 3\n\ndata: last"
    assert events(ServerSentEvents("p"), [body]) == [b"one\ntwo", b"last"]


def test_json_lines_skip_blank_lines_and_keep_the_last() -> None:
    assert events(JsonLines("p"), [b"{}\r\n\n  \n[", b"1]"]) == [b"{}", b"[1]"]


def test_a_line_that_never_ends_is_refused() -> None:
    lines = Lines("p", limit=10)
    with pytest.raises(ProviderError, match="longer than"):
        list(lines.feed(b"x" * 11))


def test_an_event_of_many_lines_is_bounded_too() -> None:
    half = b"data: " + b"x" * (MAX_LINE // 2 + 1) + b"\n"
    with pytest.raises(ProviderError, match="longer than"):
        events(ServerSentEvents("p"), [half, half])


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_malformed(text: bytes) -> None:
    with pytest.raises(ProviderError) as caught:
        read_object("p", text)
    assert caught.value.fault is ProviderFault.MALFORMED
