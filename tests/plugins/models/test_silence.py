"""A model that says nothing is given up, whatever keeps its connection open."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from itertools import chain, repeat

import httpx
import pytest
from agenthost import ProviderError, ProviderFault, ProviderSpec
from agenthost_dialects.openai_chat import OpenAIChat

from .bench import Bench
from .upstream import Upstream

PING = b": still here\n\n"
EMPTY = b'data: {"choices": [{"delta": {"content": ""}}]}\n\n'


def piece(**delta: object) -> bytes:
    """Write an event of the stream."""
    return f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n".encode()


def argument(text: str) -> bytes:
    """Write a piece of a tool call."""
    call = {"index": 0, "id": "1", "function": {"name": "x", "arguments": text}}
    return piece(tool_calls=[call])


class Drip(httpx.AsyncByteStream):
    """A body whose events come a hundred seconds apart."""

    def __init__(self, bench: Bench, events: Iterable[bytes]) -> None:
        self._bench = bench
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self._events:
            await self._bench.clock.advance(100)
            yield event


def dripping(events: Iterable[bytes], *, always_thinks: bool = False) -> Bench:
    """A bench whose provider sends these events."""
    bench = Bench([Upstream("a")])
    (spec,) = bench.offers
    assert isinstance(spec, ProviderSpec)
    (row,) = spec.facts.models
    rows = (replace(row, always_thinks=always_thinks),)
    facts = replace(spec.facts, models=rows, base_url="http://a.test/v1")
    bench.offers[:] = [ProviderSpec(facts, OpenAIChat())]
    body = Drip(bench, events)
    http = httpx.AsyncClient(
        transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=body))
    )
    bench.daemon.egress.client = lambda _: http
    bench.restart()
    return bench


@pytest.mark.parametrize("sign", [PING, EMPTY])
@pytest.mark.parametrize(("always_thinks", "patience"), [(False, 300), (True, 900)])
async def test_pings_and_empty_pieces_are_silence(
    sign: bytes, *, always_thinks: bool, patience: int
) -> None:
    bench = dripping(repeat(sign, 50), always_thinks=always_thinks)
    with pytest.raises(ProviderError) as caught:
        await bench.ask("a")
    assert caught.value.fault is ProviderFault.TIMEOUT
    assert bench.clock.monotonic() == patience + 100


@pytest.mark.parametrize(
    "events",
    [
        (piece(content="a"),) * 9,
        (piece(reasoning_content="a"),) * 9,
        tuple(map(argument, ('{"a": "', *"bcdefgh", '"}'))),
    ],
)
async def test_words_thoughts_and_arguments_are_none(events: tuple[bytes, ...]) -> None:
    last = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    body = (*between(events), last, b"data: [DONE]\n\n")
    bench = dripping(body)
    answered = await bench.ask("a")
    assert answered.completion.message.parts
    assert bench.clock.monotonic() > 1_500


def between(events: Iterable[bytes]) -> Iterator[bytes]:
    """Put a ping after every event."""
    return chain.from_iterable((event, PING) for event in events)
