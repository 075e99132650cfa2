"""No prompt is held for less than its vendor may count; what is held is waited for."""

from __future__ import annotations

import asyncio
import base64
import random
from dataclasses import replace
from typing import Any

import pytest
from agenthost import ChatRequest, Message, QuotaExceeded, Role, Text, Usage
from agenthost_models.estimate import ENOUGH, Counts, measure

from .bench import Bench
from .test_budget import DEAR
from .upstream import Upstream

SCRIPTS = {
    "english": "the quick brown fox jumps over the lazy dog and goes home again ",
    "russian": "съешь ещё этих мягких французских булок да выпей чаю ",
    "chinese": "天地玄黄宇宙洪荒日月盈昃辰宿列张",
    "hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में ",
    "emoji": "🙂🚀🌍🎉",
    "base64": base64.b64encode(random.Random(1).randbytes(600)).decode(),
}


def said(text: str) -> tuple[Message, ...]:
    return (Message(Role.USER, (Text(text),)),)


class Counting(Upstream):
    """Counts what it reads as the harshest vendor could: a token a byte."""

    tokens_a_byte = 1.0

    async def stream(self, call: Any) -> Any:
        size = sum(len(m.text.encode()) for m in call.request.messages)
        size += len(call.request.system.encode())
        written = min(50, call.request.max_tokens or 50)
        usage = Usage(max(round(size * self.tokens_a_byte), 1), written)
        # Others get their turn while this one runs.
        await asyncio.sleep(0)
        self.usage = usage
        async for delta in super().stream(call):
            yield delta


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_prompt_in_any_script_is_held_in_full(script: str) -> None:
    one = Counting("a", input_cost=DEAR, output_cost=DEAR)
    bench = Bench([one], {"budget": {"max_daily_usd": 2.0}})
    asks = [
        bench.ask("a", bench.payer(), messages=said(SCRIPTS[script] * n), max_tokens=50)
        for n in range(1, 33)
    ]
    await bench.passing(asyncio.gather(*asks, return_exceptions=True))
    spent = sum(row.cost_micro_usd for row in bench.ledger.rows)
    assert 0 < spent <= 2_000_000


async def test_six_scripts_at_once_overspend_nothing() -> None:
    one = Counting("a", input_cost=DEAR, output_cost=DEAR)
    bench = Bench([one], {"budget": {"max_daily_usd": 1.0}})
    texts = [[*SCRIPTS.values()][n % 6] * (1 + n // 12) for n in range(32)]
    asks = [
        bench.ask("a", bench.payer(), messages=said(text), max_tokens=50)
        for text in texts
    ]
    ends = await bench.passing(asyncio.gather(*asks, return_exceptions=True))
    spent = sum(row.cost_micro_usd for row in bench.ledger.rows)
    assert 0 < spent <= 1_000_000
    assert any(isinstance(end, QuotaExceeded) for end in ends)


def asked(text: str) -> ChatRequest:
    return ChatRequest("", "", said(text))


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_bound_is_no_less_than_the_bytes(script: str) -> None:
    text = SCRIPTS[script]
    assert measure(asked(text)).most >= len(text.encode())
    assert measure(asked(text)).likely <= measure(asked(text)).most


def test_the_bound_holds_until_there_are_enough_counts() -> None:
    counts, prompt = Counts(), measure(asked(SCRIPTS["english"] * 10))
    for _ in range(19):
        counts.learn(("a", "m"), prompt, prompt.most // 4)
        assert counts.most(("a", "m"), prompt) == prompt.most
    counts.learn(("a", "m"), prompt, prompt.most // 4)
    assert counts.most(("a", "m"), prompt) in range(
        prompt.most // 4, prompt.most // 4 + 2
    )
    assert counts.most(("a", "other"), prompt) == prompt.most


def test_what_is_learnt_is_the_95th_percentile() -> None:
    counts, prompt = Counts(), measure(asked(SCRIPTS["english"] * 100))
    for counted in [1_000] * 95 + [2_000] * 5:
        counts.learn(("a", "m"), prompt, counted)
    assert counts.most(("a", "m"), prompt) in range(1_000, 1_002)
    counts.learn(("a", "m"), prompt, 2_000)
    assert counts.most(("a", "m"), prompt) in range(2_000, 2_002)


def test_what_one_script_teaches_says_nothing_of_another() -> None:
    counts, english = Counts(), measure(asked(SCRIPTS["english"]))
    for _ in range(ENOUGH):
        counts.learn(("a", "m"), english, english.likely // 2)
    for script in ("russian", "chinese", "hindi", "emoji", "base64"):
        other = measure(asked(SCRIPTS[script]))
        if script != "hindi":
            assert counts.most(("a", "m"), other) == other.most, script


def test_a_vendor_that_counts_more_than_bytes_is_believed_at_once() -> None:
    counts, prompt = Counts(), measure(asked("hello"))
    counts.learn(("a", "m"), prompt, prompt.most * 3)
    assert counts.most(("a", "m"), prompt) >= prompt.most * 3


def test_the_form_of_an_answer_is_read_as_well() -> None:
    form = {"type": "object", "description": "É" * 500}
    plain, formed = asked("hello"), replace(asked("hello"), response_format=form)
    assert measure(formed).most >= measure(plain).most + len(str(form).encode())


def test_half_a_pair_is_measured() -> None:
    assert measure(asked("\ud83d hello")).most > 0


class Slow(Upstream):
    """Answers when the test says so."""

    async def stream(self, call: Any) -> Any:
        await self.gate.wait()  # type: ignore[attr-defined]
        async for delta in super().stream(call):
            yield delta


def slow() -> tuple[Bench, Slow]:
    one = Slow("a", usage=Usage(20, 10), input_cost=DEAR, output_cost=DEAR)
    one.gate = asyncio.Event()  # type: ignore[attr-defined]
    return Bench([one], {"budget": {"max_hourly_usd": 0.2}}), one


async def turns_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_others_hold_is_waited_for() -> None:
    bench, one = slow()
    first = asyncio.create_task(bench.ask("a", bench.payer(), max_tokens=100))
    await turns_of_the_loop()
    second = asyncio.create_task(bench.ask("a", bench.payer(), max_tokens=100))
    await turns_of_the_loop()
    assert not second.done()
    one.gate.set()  # type: ignore[attr-defined]
    await asyncio.gather(first, second)
    assert len(bench.ledger.rows) == 2


async def test_it_is_waited_for_no_longer_than_thirty_seconds() -> None:
    bench, one = slow()
    first = asyncio.create_task(bench.ask("a", bench.payer(), max_tokens=100))
    await turns_of_the_loop()
    second = asyncio.create_task(bench.ask("a", bench.payer(), max_tokens=100))
    await turns_of_the_loop()
    await bench.clock.advance(29.5)
    await turns_of_the_loop()
    assert not second.done()
    await bench.clock.advance(1)
    with pytest.raises(QuotaExceeded, match="held of"):
        await second
    one.gate.set()  # type: ignore[attr-defined]
    await first


async def test_who_leaves_while_waiting_holds_nothing() -> None:
    bench, one = slow()
    first = asyncio.create_task(bench.ask("a", bench.payer(), max_tokens=100))
    await turns_of_the_loop()
    second = asyncio.create_task(bench.ask("a", bench.payer(), max_tokens=100))
    await turns_of_the_loop()
    second.cancel()
    one.gate.set()  # type: ignore[attr-defined]
    await first
    (meter,) = await bench.models._budgets._daemon_meters()
    assert meter.held == 0
    assert second.cancelled()


async def test_what_never_fits_is_refused_at_once() -> None:
    bench, one = slow()
    first = asyncio.create_task(bench.ask("a", bench.payer(), max_tokens=100))
    await turns_of_the_loop()
    with pytest.raises(QuotaExceeded):
        await asyncio.wait_for(
            bench.ask("a", bench.payer(), messages=said("x" * 300), max_tokens=100), 5
        )
    one.gate.set()  # type: ignore[attr-defined]
    await first


async def test_a_model_without_a_price_is_refused_under_a_budget() -> None:
    free = Upstream("a", input_cost=0.0, output_cost=0.0)
    bench = Bench([free], {"budget": {"max_hourly_usd": 1.0}})
    await bench.ask("a", bench.payer())
    target = bench.models.resolve("a", "gpt-99-unknown")
    stream = bench.models.stream(target, asked("hi"), bench.payer())
    with pytest.raises(QuotaExceeded, match=r"price nobody knows.*providers\.a"):
        await anext(stream)
    assert len(free.requests) == 1
