"""Words read without a parser are the words that a parser reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agenthost import ChatRequest, Completion, Delta, Endpoint, Message, Role, Text
from agenthost_dialects.decoding import EventDecoder
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.openai_decoder import OpenAIDecoder
from agenthost_dialects.repeats import TRIES, Repeats
from agenthost_egress.exchange import joined
from hypothesis import example, given
from hypothesis import strategies as st

REQUEST = ChatRequest("m", "", (Message(Role.USER, (Text("hi"),)),))
ENDPOINT = Endpoint("openai", "http://127.0.0.1/v1", None)
WORDS = st.text(max_size=8) | st.sampled_from(["word ", '"', "\\", "\n", "é", "�", ""])


def event(words: Any, ascii_only: bool = True, **more: Any) -> bytes:
    delta = {"content": words}
    choices = [{"index": 0, "delta": delta, "finish_reason": None}]
    written = json.dumps(
        {"id": "c", "choices": choices, **more}, ensure_ascii=ascii_only
    )
    return written.encode("utf-8", "surrogatepass")


END = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}).encode()
EVENTS = st.lists(
    st.builds(event, WORDS, st.booleans())
    | st.builds(event, WORDS, created=st.integers(0, 2))
    | st.builds(event, st.just("x"), content=st.sampled_from(["x", "y"])),
    max_size=30,
)


def read(decoder: OpenAIDecoder, chunks: list[bytes], *, parsed: bool) -> list[Delta]:
    feed = EventDecoder.feed if parsed else OpenAIDecoder.feed
    deltas = [delta for chunk in chunks for delta in feed(decoder, chunk)]
    return joined([*deltas, *decoder.close()])


@given(EVENTS, st.lists(st.integers(1, 400), max_size=6))
@example([event("one "), event("two "), event('a"'), event("b\\"), event("")], [])
@example([event("a"), event("b"), b'{"id": "c"', event("c")], [])
def test_a_stream_reads_as_if_every_event_were_parsed(
    events: list[bytes], cuts: list[int]
) -> None:
    body = b"".join(b"data: %s\n\n" % each for each in [*events, END, b"[DONE]"])
    chunks, at = [], 0
    for cut in cuts:
        chunks.append(body[at : at + cut])
        at += cut
    chunks.append(body[at:])
    outcomes = []
    for parsed in (True, False):
        decoder = OpenAIChat().decoder(REQUEST, ENDPOINT)
        try:
            outcomes.append(read(decoder, chunks, parsed=parsed))
        except Exception as error:  # noqa: BLE001 - the same error is the same outcome
            outcomes.append([type(error), str(error)])  # type: ignore[list-item]
    assert outcomes[0] == outcomes[1]


def test_what_follows_the_end_is_not_read() -> None:
    events = [event("one "), event("two "), END, b"[DONE]", event("three")]
    body = b"".join(b"data: %s\n\n" % each for each in events)
    decoder = OpenAIChat().decoder(REQUEST, ENDPOINT)
    (last,) = [d for d in decoder.feed(body) if isinstance(d, Completion)]
    assert last.message.text == "one two "


def learned(first: bytes, words: str = "one ") -> Repeats:
    repeats = Repeats(b"content")
    repeats.learn(first, words)
    return repeats


def test_strings_are_read_up_to_an_event_that_must_be_parsed() -> None:
    repeats = learned(event("one "))
    events = [event("é", False), event("two "), event("\n"), event("three")]
    assert repeats.read(events, 0) == ["é", "two "]
    assert repeats.read(events, 2) == []
    assert repeats.read(events, 3) == ["three"]


@pytest.mark.parametrize(
    "other",
    [
        event("two", created=1),
        event("two")[:-1],
        event("two").replace(b"two", b'two","content": "three'),
        event("two").replace(b"two", b"\xff"),
        event("two").replace(b"two", b"\x07"),
        event("one ")[:40],
    ],
)
def test_an_event_that_differs_elsewhere_is_parsed(other: bytes) -> None:
    assert learned(event("one ")).read([other], 0) == []


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (event('a"b'), 'a"b'),
        (event("x", content="x"), "x"),
        (event("x", kind="content"), "x"),
        (b'{"choices": []}', "x"),
    ],
)
def test_an_event_whose_string_cannot_be_found_teaches_nothing(
    first: bytes, words: str
) -> None:
    assert learned(first, words).read([first], 0) == []


def test_a_stream_that_never_repeats_is_left_alone() -> None:
    repeats = Repeats(b"content")
    for number in range(TRIES):
        repeats.learn(event("x", created=number), "x")
    repeats.learn(event("x"), "x")
    assert repeats.read([event("x")], 0) == []
