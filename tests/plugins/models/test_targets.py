"""Where targets count as equals, the quickest or the cheapest goes first."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from agenthost import (
    Delta,
    Message,
    ModelCall,
    Pool,
    ProviderError,
    ProviderFault,
    QuotaExceeded,
    Role,
    ToolOutput,
)
from agenthost.testing import Daemons, ManualClock
from agenthost_models.preference import NEARLY, WEIGHT, Preference
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from .bench import Bench
from .test_failover import FALLBACKS
from .upstream import ASKED, Fails, Upstream

SLUGS = "abc"
TOO_DEAR = 1e6
RESTS = Fails(ProviderFault.RATE_LIMITED, retry_after=3_000)
REFUSED = Fails(ProviderFault.AUTH, retry_after=3_000)


@dataclass
class Late(Upstream):
    """A provider whose first word takes its time."""

    seconds: float = 0.0
    begun: int = 0
    clock: ManualClock = field(default_factory=ManualClock)

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        self.begun += 1
        if self.seconds:
            await self.clock.sleep(self.seconds)
        async for delta in super().stream(call):
            yield delta


class Steady(Random):
    """Never explores, or always, and always the first."""

    def __init__(self, *, explores: bool = False) -> None:
        super().__init__(7)
        self.explores = explores

    def random(self) -> float:
        return 0.0 if self.explores else 0.99

    def choice(self, seq: Any) -> Any:
        return seq[0]


def benched(
    policy: str, upstreams: Sequence[Late], random: Random | None = None
) -> Bench:
    """A router over late providers, at a moment that is not 0."""
    bench = Bench(upstreams, {"attempts": {"targets": policy}} if policy else None)
    bench.random = random or Steady()
    for each in upstreams:
        each.clock = bench.clock
    bench.restart()
    return bench


async def measured(bench: Bench, upstream: Late, *seconds: float) -> None:
    """Ask one provider alone, each time with another wait."""
    now = upstream.seconds
    for upstream.seconds in seconds:
        await bench.passing(bench.ask(upstream.slug, bench.payer()))
    upstream.seconds, upstream.begun = now, 0


def called(upstreams: Sequence[Late]) -> Counter[str]:
    """How often each was asked, those included that still wait."""
    return Counter({each.slug: each.begun for each in upstreams})


async def first_of(bench: Bench, upstreams: Sequence[Late], **paid: Any) -> str:
    """Who answers a call for the first, to which the others may fall back."""
    payer = bench.payer(FALLBACKS, **paid)
    answered = await bench.passing(bench.ask("a", payer))
    assert payer.failed == []
    return answered.spent.provider


@pytest.mark.setting("attempts.targets")
@pytest.mark.parametrize(
    ("policy", "first"), [("in_order", "a"), ("latency", "b"), ("cost", "c")]
)
async def test_who_goes_first_is_as_configured(policy: str, first: str) -> None:
    upstreams = [
        Late("a", input_cost=3.0, output_cost=6.0),
        Late("b", input_cost=2.0, output_cost=4.0),
        Late("c", input_cost=1.0, output_cost=2.0),
    ]
    bench = benched(policy, upstreams)
    await bench.clock.advance(1)
    for upstream, seconds in zip(upstreams, (3, 1, 2), strict=True):
        await measured(bench, upstream, seconds)
    assert await first_of(bench, upstreams) == first


async def test_unset_nothing_is_chosen_drawn_or_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> Any:
        raise AssertionError

    monkeypatch.setattr(Preference, "order", refuse)
    upstreams = [Late(slug) for slug in SLUGS]
    bench = benched("", upstreams)
    monkeypatch.setattr(bench.random, "random", refuse)
    monkeypatch.setattr(bench.models._latencies, "began", refuse)
    monkeypatch.setattr(bench.models._latencies, "ended", refuse)
    for _ in range(5):
        assert await first_of(bench, upstreams) == "a"


@dataclass(frozen=True)
class State:
    """What a target went through before the call."""

    mood: str
    seconds: tuple[int, ...]
    cost: int


STATES = st.builds(
    State,
    st.sampled_from(("well", "well", "rests", "refused", "poor", "keyless")),
    st.lists(st.integers(1, 12), max_size=4).map(tuple),
    st.integers(1, 5),
)


def average(seconds: Sequence[int]) -> float:
    """The moving average, as a plain sum of weights."""
    last = len(seconds) - 1
    shares = [
        (1 - WEIGHT) ** (last - n) * (WEIGHT if n else 1) for n in range(last + 1)
    ]
    return sum(s * each for s, each in zip(shares, seconds, strict=True))


def expected(policy: str, well: dict[str, State]) -> str:
    """Who goes first when nobody explores, said another way."""
    if policy == "in_order":
        return min(well)
    if policy == "cost":
        lowest = min(state.cost for state in well.values())
        return min(slug for slug in well if well[slug].cost == lowest)
    known = {slug: average(s.seconds) for slug, s in well.items() if s.seconds}
    if not known:
        return min(well)
    most = NEARLY * min(known.values())
    assume(all(abs(each - most) > 1e-6 for each in known.values()))
    return min(slug for slug, each in known.items() if each <= most)


async def prepared(bench: Bench, upstream: Late, state: State) -> None:
    """Let a target live through what its state says."""
    bench.environ[f"{upstream.slug.upper()}_KEY"] = "key"
    await measured(bench, upstream, *state.seconds)
    if state.mood in {"rests", "refused"}:
        upstream.usual = RESTS if state.mood == "rests" else REFUSED
        with pytest.raises(ProviderError):
            await bench.passing(bench.ask(upstream.slug, bench.payer()))
        upstream.usual = "well again, but nobody knows"
    if state.mood == "keyless":
        del bench.environ[f"{upstream.slug.upper()}_KEY"]


@pytest.mark.conformance
@settings(max_examples=120, deadline=None)
@given(
    policy=st.sampled_from(("in_order", "latency", "cost")),
    states=st.lists(STATES, min_size=3, max_size=3),
    seed=st.none() | st.integers(0, 999),
)
def test_who_goes_first_is_well_and_the_best_while_anybody_is_well(
    policy: str, states: list[State], seed: int | None
) -> None:
    async def scenario() -> None:
        upstreams = [
            Late(
                slug,
                key_required=True,
                input_cost=TOO_DEAR if state.mood == "poor" else state.cost,
                output_cost=2 * state.cost,
            )
            for slug, state in zip(SLUGS, states, strict=True)
        ]
        well = {
            s: one for s, one in zip(SLUGS, states, strict=True) if one.mood == "well"
        }
        assume(well)
        assume(policy != "in_order" or states[0].mood != "poor")
        random = Steady() if seed is None else Random(seed)
        bench = benched(policy, upstreams, random)
        await bench.clock.advance(1)
        for upstream, state in zip(upstreams, states, strict=True):
            await prepared(bench, upstream, state)
        if policy == "in_order":
            # A target without room is refused, as it always was.
            assume("poor" not in [one.mood for one in states[: SLUGS.index(min(well))]])
        first = await first_of(bench, upstreams, pools=(Pool(50_000),))
        assert first in well
        if seed is None:
            assert first == expected(policy, well)

    asyncio.run(scenario())


async def pair(random: Random, *seconds: float) -> tuple[Bench, list[Late]]:
    """Targets that were measured so, and wait for a second each from now on."""
    upstreams = [Late(slug) for slug in SLUGS[: len(seconds)]]
    bench = benched("latency", upstreams, random)
    await bench.clock.advance(1)
    for upstream, each in zip(upstreams, seconds, strict=True):
        await measured(bench, upstream, each)
        upstream.seconds = 1.0
    return bench, upstreams


async def at_once(bench: Bench, count: int, **asked: Any) -> list[asyncio.Task[Any]]:
    """Start so many calls, and let each come as far as it can."""
    payer = bench.payer(FALLBACKS)
    calls = [asyncio.create_task(bench.ask("a", payer, **asked)) for _ in range(count)]
    for _ in range(50):
        await asyncio.sleep(0)
    return calls


async def test_calls_at_once_are_shared_by_those_that_are_nearly_as_quick() -> None:
    bench, upstreams = await pair(Steady(), 2.0, 2.4)
    calls = await at_once(bench, 40)
    assert called(upstreams) == {"a": 20, "b": 20}
    await bench.passing(asyncio.gather(*calls))


async def test_of_many_calls_at_once_one_explores() -> None:
    bench, upstreams = await pair(Steady(explores=True), 1.0, 8.0)
    calls = await at_once(bench, 40)
    assert called(upstreams) == {"a": 39, "b": 1}
    await bench.passing(asyncio.gather(*calls))


async def test_a_tool_loop_does_not_explore() -> None:
    bench, upstreams = await pair(Steady(explores=True), 1.0, 8.0)
    results = Message(Role.TOOL, (ToolOutput("1", "look", "seen"),))
    calls = await at_once(bench, 5, messages=(*ASKED.messages, results))
    assert called(upstreams) == {"a": 5, "b": 0}
    await bench.passing(asyncio.gather(*calls))


async def test_a_few_percent_of_calls_explore() -> None:
    bench, upstreams = await pair(Random(3), 1.0, 8.0)
    for upstream in upstreams:
        upstream.seconds = 0.0
    upstreams[1].clock = bench.clock
    for _ in range(400):
        calls = await at_once(bench, 1)
        # Its average stays what it was: what it finds out is not the question here.
        bench.models._latencies._averages["b", "b-model"] = 8.0
        await asyncio.gather(*calls)
    assert 8 <= called(upstreams)["b"] <= 40


async def test_who_has_stopped_answering_is_left_while_its_calls_wait() -> None:
    bench, upstreams = await pair(Steady(), 1.0, 4.0)
    upstreams[0].seconds = 200.0
    waiting = await at_once(bench, 3)
    assert called(upstreams) == {"a": 3, "b": 0}
    await bench.clock.advance(10)
    calls = await at_once(bench, 3)
    assert called(upstreams) == {"a": 3, "b": 3}
    await bench.passing(asyncio.gather(*calls, *waiting))
    later = await at_once(bench, 1)
    assert called(upstreams)["b"] == 4
    await bench.passing(asyncio.gather(*later))


async def test_a_quick_failure_is_no_quick_answer() -> None:
    bench, upstreams = await pair(Steady(), 1.0, 4.0)
    upstreams[1].seconds, upstreams[1].usual = 0.0, Fails(ProviderFault.BAD_REQUEST)
    with pytest.raises(ProviderError):
        await bench.ask("b", bench.payer())
    assert bench.models._latencies._averages["b", "b-model"] == 4.0


async def test_a_call_that_ends_is_not_counted_as_running_any_more() -> None:
    bench, upstreams = await pair(Steady(), 1.0, 1.0)
    calls = await at_once(bench, 4)
    calls[0].cancel()
    await bench.passing(asyncio.gather(*calls, return_exceptions=True))
    assert not bench.models._latencies._running
    assert called(upstreams) == {"a": 2, "b": 2}


async def test_who_waits_for_a_budget_goes_behind_who_has_room() -> None:
    upstreams = [Late("a", input_cost=50.0, output_cost=50.0), Late("b")]
    bench = benched("latency", upstreams)
    await bench.clock.advance(1)
    await measured(bench, upstreams[0], 1)
    await measured(bench, upstreams[1], 5)
    pool = Pool(100_000, used=0)
    pool.held = 95_000
    assert await first_of(bench, upstreams, pools=(pool,)) == "b"
    pool.held = 0
    assert await first_of(bench, upstreams, pools=(pool,)) == "a"


async def test_who_cannot_be_paid_does_not_end_a_call_that_another_can_answer() -> None:
    upstreams = [Late("a", input_cost=TOO_DEAR), Late("b")]
    bench = benched("cost", upstreams)
    upstreams[1].script.append(Fails(ProviderFault.SERVER))
    payer = bench.payer(FALLBACKS, pools=(Pool(50_000),))
    answered = await bench.passing(bench.ask("a", payer))
    assert answered.spent.provider == "b"
    assert called(upstreams) == {"a": 0, "b": 2}


async def test_where_nobody_can_be_paid_the_call_is_refused() -> None:
    upstreams = [Late("a", input_cost=TOO_DEAR), Late("b", input_cost=TOO_DEAR)]
    bench = benched("latency", upstreams)
    with pytest.raises(QuotaExceeded):
        await bench.ask("a", bench.payer(FALLBACKS, pools=(Pool(50_000),)))
    assert called(upstreams) == {"a": 0, "b": 0}


async def test_who_rests_is_not_explored() -> None:
    bench, upstreams = await pair(Steady(explores=True), 1.0, 2.0, 3.0)
    upstreams[1].usual = RESTS
    with pytest.raises(ProviderError):
        await bench.passing(bench.ask("b", bench.payer()))
    upstreams[1].begun = 0
    calls = await at_once(bench, 1)
    assert called(upstreams) == {"a": 0, "b": 0, "c": 1}
    await bench.passing(asyncio.gather(*calls))


@pytest.mark.parametrize("policy", ["latency", "cost"])
async def test_an_agent_that_keeps_its_model_goes_on_with_it(policy: str) -> None:
    upstreams = [Late("a", input_cost=9.0), Late("b")]
    bench = benched(policy, upstreams)
    await bench.clock.advance(1)
    await measured(bench, upstreams[0], 5)
    await measured(bench, upstreams[1], 1)
    assert await first_of(bench, upstreams) == "b"
    bench.pinned = ("a", "a-model")
    assert await first_of(bench, upstreams) == "a"


async def test_the_cheapest_goes_first_in_a_daemon_too(daemons: Daemons) -> None:
    dear, cheap = Upstream("dear", input_cost=9.0, output_cost=9.0), Upstream("cheap")
    daemon = await daemons.start(
        config='[attempts]\ntargets = "cost"\n', plugins=[dear.plugin, cheap.plugin]
    )
    own = '[model]\nprovider = "dear"\n[[fallback_models]]\nprovider = "cheap"\n'
    agent = await daemon.agent(tools=[], extra=own)
    await agent.ask("hi")
    assert (len(dear.requests), len(cheap.requests)) == (0, 1)
    path = f"/api/agents/{agent.id}/mode"
    assert (await daemon.http.put(path, json={"mode": "Stable"})).status_code == 200
    await agent.ask("hi")
    assert (len(dear.requests), len(cheap.requests)) == (1, 1)
