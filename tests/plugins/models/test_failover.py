"""A call is answered when anybody can answer it."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest
from agenthost import ProviderError, ProviderFault
from agenthost_models.attempts import OF_THE_KEY, PASSING
from agenthost_models.breaker import Breakers
from agenthost_models.models import FINAL
from hypothesis import given, settings
from hypothesis import strategies as st

from .bench import Bench
from .upstream import Fails, Upstream

FALLBACKS = "".join(f'[[fallback_models]]\nprovider = "{s}"\n' for s in ("b", "c"))
SICK = st.sampled_from([fault for fault in ProviderFault if fault not in FINAL])
OF_ONE_KEY = OF_THE_KEY | {ProviderFault.RATE_LIMITED}
FAILS = st.builds(Fails, SICK, retry_after=st.none() | st.floats(0, 10_000))


async def test_a_passing_fault_is_tried_again() -> None:
    one = Upstream("a", deque([Fails(ProviderFault.SERVER)]))
    bench = Bench([one])
    answered = await bench.passing(bench.ask("a", bench.payer()))
    assert answered.completion.message.text == "fine"
    assert len(one.requests) == 2


async def test_retry_after_is_honoured() -> None:
    one = Upstream("a", deque([Fails(ProviderFault.RATE_LIMITED, retry_after=12)]))
    bench = Bench([one])
    await bench.passing(bench.ask("a", bench.payer()))
    assert 12 <= bench.clock.monotonic() < 13


async def test_a_long_retry_after_fails_at_once() -> None:
    one = Upstream("a", usual=Fails(ProviderFault.RATE_LIMITED, retry_after=3_600))
    bench = Bench([one])
    with pytest.raises(ProviderError) as caught:
        await bench.passing(bench.ask("a", bench.payer()))
    assert caught.value.fault is ProviderFault.RATE_LIMITED
    assert len(one.requests) == 1
    assert bench.clock.monotonic() < 5


@pytest.mark.manifest("fallback_models.provider")
@pytest.mark.setting("fallback_providers[].provider")
async def test_the_agents_fallbacks_come_before_the_daemons() -> None:
    a, b, c = (Upstream(s, usual=Fails(ProviderFault.BILLING)) for s in "abc")
    c.usual = "here"
    d = Upstream("d")
    bench = Bench(
        [a, b, c, d], {"fallback_providers": [{"provider": "d"}, {"provider": "c"}]}
    )
    payer = bench.payer('[[fallback_models]]\nprovider = "b"\n')
    answered = await bench.passing(bench.ask("a", payer))
    assert answered.spent.provider == "d"
    assert [len(u.requests) for u in (a, b, c, d)] == [1, 1, 0, 1]


@pytest.mark.manifest("fallback_models.model")
async def test_a_fallback_may_be_another_model_of_its_provider() -> None:
    a, b = Upstream("a", usual=Fails(ProviderFault.BILLING)), Upstream("b")
    bench = Bench([a, b])
    payer = bench.payer('[[fallback_models]]\nprovider = "b"\nmodel = "other"\n')
    await bench.passing(bench.ask("a", payer))
    assert [request.model for request in b.requests] == ["other"]


async def test_the_row_names_the_model_that_answered() -> None:
    a, b = Upstream("a", usual=Fails(ProviderFault.AUTH)), Upstream("b")
    bench = Bench([a, b, Upstream("c")])
    answered = await bench.ask("a", bench.payer(FALLBACKS))
    assert (answered.spent.provider, answered.spent.model) == ("b", "b-model")
    assert b.requests[0].model == "b-model"


async def test_once_words_were_delivered_nothing_is_repeated() -> None:
    a, b = Upstream("a", usual=Fails(ProviderFault.SERVER, "half ")), Upstream("b")
    bench = Bench([a, b, Upstream("c")])
    with pytest.raises(ProviderError):
        await bench.ask("a", bench.payer(FALLBACKS))
    assert (len(a.requests), len(b.requests)) == (1, 0)
    (row,) = bench.ledger.rows
    assert row.usage.output_tokens > 0
    assert row.cost_micro_usd > 0


@pytest.mark.parametrize("fault", sorted(FINAL))
async def test_a_blocked_or_endless_answer_is_asked_for_once(
    fault: ProviderFault,
) -> None:
    a, b = Upstream("a", usual=Fails(fault)), Upstream("b")
    bench = Bench([a, b, Upstream("c")])
    with pytest.raises(ProviderError) as caught:
        await bench.ask("a", bench.payer(FALLBACKS))
    assert caught.value.fault is fault
    assert (len(a.requests), len(b.requests)) == (1, 0)


async def test_an_answer_is_no_call_that_was_abandoned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    abandoned = []
    monkeypatch.setattr(
        Breakers, "abandoned", lambda _, target, __: abandoned.append(target)
    )
    bench = Bench([Upstream("a")])
    await bench.ask("a", bench.payer())
    assert abandoned == []


async def test_another_key_is_tried_and_the_refused_one_rests() -> None:
    a = Upstream("a", deque([Fails(ProviderFault.AUTH)]), key_required=True)
    bench = Bench([a], vault={"provider/a": "first", "provider/a#2": "second"})
    await bench.ask("a", bench.payer())
    await bench.ask("a", bench.payer())
    assert a.keys == ["first", "second", "second"]


async def test_keys_of_the_environment_are_numbered() -> None:
    a = Upstream("a", deque([Fails(ProviderFault.BILLING)]), key_required=True)
    bench = Bench([a])
    bench.environ.update(A_KEY="one", A_KEY_2="two")
    await bench.ask("a", bench.payer())
    assert a.keys == ["one", "two"]


async def test_a_new_key_starts_afresh() -> None:
    a = Upstream("a", deque([Fails(ProviderFault.AUTH)]), key_required=True)
    bench = Bench([a])
    bench.environ["A_KEY"] = "wrong"
    with pytest.raises(ProviderError):
        await bench.ask("a")
    bench.environ["A_KEY"] = "right"
    await bench.ask("a")
    assert bench.clock.monotonic() == 0


async def test_a_trial_asks_once_and_never_waits() -> None:
    one = Upstream("a", usual=Fails(ProviderFault.OVERLOADED, retry_after=9))
    bench = Bench([one])
    for _ in range(7):
        with pytest.raises(ProviderError):
            await bench.ask("a")
    assert len(one.requests) == 7
    assert bench.clock.monotonic() == 0


async def test_without_a_key_the_first_error_says_so() -> None:
    bench = Bench([Upstream("a", key_required=True)])
    with pytest.raises(ProviderError, match="set A_KEY"):
        await bench.ask("a")


async def test_a_fallback_without_a_key_is_passed_by() -> None:
    a = Upstream("a", usual=Fails(ProviderFault.SERVER))
    b = Upstream("b", key_required=True)
    bench = Bench([a, b, Upstream("c")])
    answered = await bench.passing(bench.ask("a", bench.payer(FALLBACKS)))
    assert answered.spent.provider == "c"


async def test_a_sick_target_is_passed_by_after_some_calls() -> None:
    a, b = Upstream("a", usual=Fails(ProviderFault.SERVER)), Upstream("b")
    bench = Bench([a, b, Upstream("c")])
    for _ in range(8):
        await bench.ask("a", bench.payer(FALLBACKS))
    assert len(a.requests) == 5
    assert len(b.requests) == 8
    await bench.clock.advance(6)
    a.usual = "well again"
    answered = await bench.ask("a", bench.payer(FALLBACKS))
    assert answered.spent.provider == "a"


async def test_the_pauses_are_bounded() -> None:
    sick = [Upstream(s, usual=Fails(ProviderFault.OVERLOADED)) for s in "abc"]
    for each in sick:
        each.usual = Fails(ProviderFault.OVERLOADED, retry_after=19)
    bench = Bench(sick)
    with pytest.raises(ProviderError):
        await bench.passing(bench.ask("a", bench.payer(FALLBACKS)))
    assert bench.clock.monotonic() <= 121


@settings(max_examples=150, deadline=None)
@given(
    past=st.lists(st.lists(FAILS, min_size=3, max_size=3), max_size=6),
    sick=st.lists(FAILS, min_size=3, max_size=3),
    healthy=st.integers(0, 2),
    waits=st.lists(st.floats(0, 400), max_size=6),
)
def test_any_healthy_target_answers(
    past: list[list[Fails]], sick: list[Fails], healthy: int, waits: list[float]
) -> None:
    async def scenario() -> None:
        upstreams = [Upstream(slug) for slug in "abc"]
        bench = Bench(upstreams)
        payer = bench.payer(FALLBACKS)
        for number, faults in enumerate(past):
            for upstream, fault in zip(upstreams, faults, strict=True):
                upstream.usual = fault
            with pytest.raises(ProviderError):
                await bench.passing(bench.ask("a", payer))
            await bench.clock.advance(waits[number] if number < len(waits) else 0)
        if any(each.retry_after for faults in past for each in faults):
            # What a vendor asks for is kept, an hour at most.
            await bench.clock.advance(3_600)
        for upstream, fault in zip(upstreams, sick, strict=True):
            upstream.usual = fault
        upstreams[healthy].usual = "saved"
        said, answered = await bench.passing(bench.hear("a", payer))
        assert said == answered.completion.message.text == "saved"
        assert answered.spent.provider == upstreams[healthy].slug

    asyncio.run(scenario())


class Scene:
    """Three targets with up to three keys each, one of which will do."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.scenes: dict[str, deque[Fails | str]] = {}
        self.upstreams = [
            Upstream(slug, key_required=True, by_key=self.scenes) for slug in "abc"
        ]
        counts = [draw(st.integers(1, 3)) for _ in self.upstreams]
        self.names = [
            f"{upstream.slug}{number}"
            for upstream, count in zip(self.upstreams, counts, strict=True)
            for number in range(1, count + 1)
        ]
        self.good = draw(st.sampled_from(self.names))
        self.past = draw(st.integers(0, 3))
        # Who has seen this key fail often waits longer than a call may last.
        passing = st.builds(Fails, st.sampled_from(sorted(PASSING)))
        stumbles = draw(st.lists(passing, max_size=0 if self.past else 2))
        longest = 1.0 if stumbles else 10_000.0
        for name in self.names:
            # A fault of the service itself is none that another key would help.
            known = OF_ONE_KEY if name[0] == self.good[0] else None
            faults = st.sampled_from(sorted(known)) if known else SICK
            waits = st.none() | st.floats(0, longest)
            fails = st.builds(Fails, faults, retry_after=waits)
            told = draw(st.lists(fails, min_size=1, max_size=4))
            self.scenes[name] = deque(told)
        every = (each for own in self.scenes.values() for each in own)
        asked = (isinstance(each, Fails) and each.retry_after for each in every)
        self.asks = bool(self.past and any(asked))
        self.recovery: deque[Fails | str] = deque([*stumbles, "saved"])

    def vault(self) -> dict[str, str]:
        return {
            f"provider/{name[0]}" + (f"#{name[1]}" if name[1] != "1" else ""): name
            for name in self.names
        }


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    return Scene(draw)


@pytest.mark.conformance
@settings(max_examples=150, deadline=None)
@given(scene=scenes(), wait=st.floats(0, 400))
def test_any_key_of_any_target_that_will_do_answers(scene: Scene, wait: float) -> None:
    async def scenario() -> None:
        many = {"attempts": {"most_calls": 100}}
        bench = Bench(scene.upstreams, many, scene.vault())
        payer = bench.payer(FALLBACKS)
        for _ in range(scene.past):
            with pytest.raises(ProviderError):
                await bench.passing(bench.ask("a", payer))
            await bench.clock.advance(wait)
        if scene.asks:
            await bench.clock.advance(3_600)
        scene.scenes[scene.good] = scene.recovery
        payer.failed.clear()
        said, answered = await bench.passing(bench.hear("a", payer))
        assert said == answered.completion.message.text == "saved"
        assert answered.spent.provider == scene.good[0]
        assert all(attempt.outcome for attempt in payer.failed)

    asyncio.run(scenario())
