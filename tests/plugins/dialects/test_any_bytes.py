"""Decoders give the same answer however bytes arrive, and survive any of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Completion,
    Decoder,
    Delta,
    Dialect,
    Finish,
    ProviderError,
    ProviderFault,
    ReasoningChunk,
    TextChunk,
)
from agenthost.testing.simulators import (
    AnthropicMessagesWire,
    BedrockWire,
    CohereWire,
    GeminiWire,
    OllamaWire,
    OpenAIChatWire,
    OpenAIResponsesWire,
    ScriptedCall,
    Turn,
    Wire,
)
from agenthost.testing.simulators.bedrock import frame
from agenthost_dialects import answers
from agenthost_dialects.anthropic_messages import AnthropicMessages
from agenthost_dialects.bedrock import Bedrock
from agenthost_dialects.cohere import Cohere
from agenthost_dialects.event_stream import EventStreamFrames
from agenthost_dialects.gemini import Gemini
from agenthost_dialects.ollama import Ollama
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.openai_responses import OpenAIResponses
from hypothesis import given, settings
from hypothesis import strategies as st

from .exchange import HERE

PAIRS: list[tuple[Dialect, Wire]] = [
    (OpenAIChat.from_quirks({"think_tags": True}), OpenAIChatWire()),
    (AnthropicMessages(), AnthropicMessagesWire()),
    (Ollama(), OllamaWire()),
    (OpenAIResponses(), OpenAIResponsesWire()),
    (Gemini(), GeminiWire()),
    (Cohere(), CohereWire()),
    (Bedrock(), BedrockWire()),
]
EVERY = pytest.mark.parametrize(
    ("dialect", "wire"), PAIRS, ids=[dialect.name for dialect, _ in PAIRS]
)
QUICK = settings(max_examples=40, deadline=None)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["text", "name", "function", "id", "item", "x"]), inner
        )
    ),
    max_leaves=4,
)
CALLS = st.builds(
    ScriptedCall,
    st.sampled_from(["look", "list_files"]),
    st.dictionaries(st.text(), st.text()).map(json.dumps),
    st.sampled_from(["a", "b", ""]),
)
TURNS = st.builds(
    lambda text, reasoning, calls: Turn(
        text,
        reasoning,
        calls=tuple(calls),
        finish=Finish.TOOL_USE if calls else Finish.STOP,
    ),
    st.text() | st.just("<think>a</think>b"),
    st.text(),
    st.lists(CALLS, max_size=2),
)


def deltas(
    dialect: Dialect, chunks: list[bytes], *, stream: bool = True
) -> list[Delta]:
    """Feed the chunks to a fresh decoder."""
    decoder = dialect.decoder(ChatRequest("m", "", (), stream=stream), HERE)
    found = [delta for chunk in chunks for delta in decoder.feed(chunk)]
    return [*found, *decoder.close()]


def gist(found: list[Delta]) -> tuple[str, str, Completion]:
    """Join what was said and thought; the Completion as it is."""
    said = "".join(d.text for d in found if isinstance(d, TextChunk))
    thought = "".join(d.text for d in found if isinstance(d, ReasoningChunk))
    last = found[-1]
    assert isinstance(last, Completion)
    return said, thought, last


@pytest.mark.conformance
@EVERY
@QUICK
@given(turn=TURNS, cuts=st.lists(st.integers(0, 10_000), max_size=8))
def test_chunks_may_break_anywhere(
    dialect: Dialect, wire: Wire, turn: Turn, cuts: list[int]
) -> None:
    body = b"".join(wire.events(turn))
    places = [0, *sorted({cut % len(body) for cut in cuts}), len(body)]
    pieces = [body[a:b] for a, b in pairwise(places)]
    whole = gist(deltas(dialect, [body]))
    assert gist(deltas(dialect, pieces)) == whole
    assert gist(deltas(dialect, [body[i : i + 1] for i in range(len(body))])) == whole


@EVERY
@QUICK
@given(body=st.binary(max_size=200))
def test_no_bytes_break_a_decoder(dialect: Dialect, wire: Wire, body: bytes) -> None:
    for stream in (True, False):
        with pytest.raises(ProviderError):
            deltas(dialect, [body], stream=stream)


@EVERY
@QUICK
@given(data=st.data())
def test_no_json_breaks_a_decoder(
    dialect: Dialect, wire: Wire, data: st.DataObject
) -> None:
    turn = Turn(
        "hi", "hm", "eHg=", (ScriptedCall("look", '{"a": 1}'),), Finish.TOOL_USE
    )
    events = list(wire.events(turn))
    place = data.draw(st.integers(0, len(events) - 1))
    events[place] = rewrite(events[place], lambda value: spoil(value, data))
    attempt(dialect, events, stream=True)
    spoilt = rewrite(wire.whole(turn), lambda value: spoil(value, data))
    attempt(dialect, [spoilt], stream=False)


def attempt(dialect: Dialect, chunks: list[bytes], *, stream: bool) -> None:
    """Decode; a Completion or a ProviderError is fine, all else is a bug."""
    try:
        found = deltas(dialect, chunks, stream=stream)
    except ProviderError:
        return
    assert isinstance(found[-1], Completion)
    for use in found[-1].message.tool_uses:
        assert isinstance(use.arguments, Mapping)
        assert use.id
        assert use.name


def rewrite(event: bytes, change: Callable[[Any], Any]) -> bytes:
    """Change the JSON inside an event, when there is some."""
    if event.startswith(b"\0"):
        (found,) = EventStreamFrames("acme").feed(event)
        payload = json.dumps(change(json.loads(found.payload)))
        return frame(found.headers, payload.encode())
    start = event.find(b"{")
    if start < 0:
        return event
    value = change(json.loads(event[start:]))
    return event[:start] + json.dumps(value).encode() + b"\n\n"


def spoil(value: Any, data: st.DataObject) -> Any:
    """Replace one node, at any depth, by any JSON value."""
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = list(value)
    elif isinstance(value, list):
        inner = list(range(len(value)))
    if not inner or data.draw(st.integers(0, 4)) == 0:
        return data.draw(JSON)
    key = data.draw(st.sampled_from(inner))
    value[key] = spoil(value[key], data)
    return value


PINGS = {"ollama": b"\n\n", "bedrock-converse": b""}
LONG = "x" * 400
ENDLESS = {
    "words": Turn(LONG),
    "thoughts": Turn("ok", LONG),
    "arguments": Turn(
        calls=(ScriptedCall("look", json.dumps({"a": LONG})),), finish=Finish.TOOL_USE
    ),
    "calls": Turn(calls=(ScriptedCall("look", "{}"),) * 9, finish=Finish.TOOL_USE),
}


@EVERY
@pytest.mark.parametrize("kind", ENDLESS)
def test_an_answer_without_end_is_given_up(
    dialect: Dialect, wire: Wire, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(answers, "USUAL_ROOM", 300)
    events = wire.events(ENDLESS[kind])
    for chunks in (events, [b"".join(events)]):
        decoder = dialect.decoder(ChatRequest("m", "", ()), HERE)
        found: list[Delta] = []
        with pytest.raises(ProviderError) as caught:
            feed(decoder, chunks, found)
        assert caught.value.fault is ProviderFault.TOO_LONG
        words = [d.text for d in found if not isinstance(d, Completion)]
        assert len("".join(words)) <= 300


@EVERY
def test_an_answer_without_end_is_not_read_on(
    dialect: Dialect, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "USUAL_ROOM", 300)
    events = wire.events(Turn(LONG))
    half = len(events) // 2
    decoder = dialect.decoder(ChatRequest("m", "", ()), HERE)
    for event in events[:2]:
        decoder.feed(event)
    with pytest.raises(ProviderError) as caught:
        feed_again(decoder, events[half])
    assert caught.value.fault is ProviderFault.TOO_LONG


def feed_again(decoder: Decoder, event: bytes) -> None:
    """Feed one event many times, and no end."""
    for _ in range(200):
        decoder.feed(event)


def feed(decoder: Decoder, chunks: Sequence[bytes], found: list[Delta]) -> None:
    """Feed a body and keep what it says, also when it fails."""
    for chunk in chunks:
        found += decoder.feed(chunk)
    found += decoder.close()


@EVERY
def test_only_what_is_said_counts_as_heard(dialect: Dialect, wire: Wire) -> None:
    call = ScriptedCall("look", '{"a": 1}')
    turn = Turn("hi", "hm", calls=(call,), finish=Finish.TOOL_USE)
    decoder = dialect.decoder(ChatRequest("m", "", ()), HERE)
    grown = []
    for event in wire.events(turn):
        before = decoder.heard
        decoder.feed(event)
        grown.append(decoder.heard - before)
    assert sum(size > 0 for size in grown) >= 3
    fresh = dialect.decoder(ChatRequest("m", "", ()), HERE)
    fresh.feed(PINGS.get(dialect.name, b": ping\n\n"))
    assert fresh.heard == 0


@pytest.mark.parametrize(
    ("max_tokens", "room"),
    [
        (None, 1024 * 1024),
        (1, 64 * 1024),
        (4_096, 64 * 1024),
        (8_192, 128 * 1024),
        (10**9, 32 * 1024 * 1024),
    ],
)
def test_an_answer_has_sixteen_bytes_a_token(max_tokens: int | None, room: int) -> None:
    assert answers.room_for(max_tokens) == room
