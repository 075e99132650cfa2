"""A call waits no longer than it helps, and tells who called for how long to wait."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Any

import pytest
from agenthost import ProviderError, ProviderFault
from agenthost.testing import RunningDaemon
from agenthost_models.attempts import Patience

from .bench import Bench
from .test_failover import FALLBACKS
from .test_holds import turns_of_the_loop
from .upstream import Fails, Upstream

HOUR = Fails(ProviderFault.RATE_LIMITED, retry_after=3_600)


async def failed(bench: Bench, manifest: str = "") -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await bench.passing(bench.ask("a", bench.payer(manifest)))
    return caught.value


@pytest.mark.parametrize(
    ("fault", "status"),
    [(ProviderFault.RATE_LIMITED, 429), (ProviderFault.OVERLOADED, 503)],
)
async def test_a_pause_beyond_patience_is_the_answer_and_is_kept(
    fault: ProviderFault, status: int
) -> None:
    one = Upstream("a", usual=Fails(fault, retry_after=3_600))
    bench = Bench([one])
    await failed(bench)
    await bench.clock.advance(100)
    for _ in range(5):
        error = await failed(bench)
    assert len(one.requests) == 1
    assert (error.status, error.code, error.fault) == (status, fault.value, fault)
    assert 3_490 < (error.retry_in or 0) <= 3_500
    assert error.facts == {"retry_after": error.retry_in}
    one.usual = "well again"
    await bench.clock.advance(3_500)
    await bench.passing(bench.ask("a", bench.payer()))
    assert len(one.requests) == 2


async def test_who_asked_for_a_pause_is_passed_by() -> None:
    one, other = Upstream("a", usual=HOUR), Upstream("b")
    bench = Bench([one, other, Upstream("c")])
    for _ in range(4):
        await bench.ask("a", bench.payer(FALLBACKS))
    assert (len(one.requests), len(other.requests)) == (1, 4)


class Slow(Upstream):
    """Answers or fails when the test says so."""

    begun = 0

    async def stream(self, call: Any) -> Any:
        self.begun += 1
        await self.gate.wait()  # type: ignore[attr-defined]
        async for delta in super().stream(call):
            yield delta


async def sick(seconds: float) -> tuple[Bench, Slow]:
    """A target that has failed often enough, after so many seconds."""
    one = Slow("a", usual=Fails(ProviderFault.SERVER))
    one.gate = asyncio.Event()  # type: ignore[attr-defined]
    one.gate.set()  # type: ignore[attr-defined]
    bench = Bench([one])
    while not bench.models.resting("a"):
        await failed(bench)
    await bench.clock.advance(seconds)
    one.begun = 0
    one.gate.clear()  # type: ignore[attr-defined]
    return bench, one


@pytest.mark.parametrize("seconds", [0, 300])
async def test_of_many_that_wait_one_probes(seconds: float) -> None:
    bench, one = await sick(seconds)
    one.usual = "fine"
    asks = [asyncio.create_task(bench.ask("a", bench.payer())) for _ in range(32)]
    await turns_of_the_loop()
    while not one.begun:
        await bench.clock.advance(1)
    await turns_of_the_loop()
    assert one.begun == 1
    one.gate.set()  # type: ignore[attr-defined]
    await bench.passing(asyncio.gather(*asks))
    assert one.begun == 32


async def test_a_probe_that_fails_is_one_for_all() -> None:
    bench, one = await sick(300)
    one.gate.set()  # type: ignore[attr-defined]
    asks = [bench.ask("a", bench.payer()) for _ in range(32)]
    ends = await bench.passing(asyncio.gather(*asks, return_exceptions=True))
    assert all(isinstance(end, ProviderError) for end in ends)
    assert one.begun <= 4


async def test_a_probe_that_is_left_is_for_another() -> None:
    bench, one = await sick(300)
    first = asyncio.create_task(bench.ask("a", bench.payer()))
    await turns_of_the_loop()
    second = asyncio.create_task(bench.ask("a", bench.payer()))
    await turns_of_the_loop()
    assert one.begun == 1
    one.usual = "fine"
    first.cancel()
    one.gate.set()  # type: ignore[attr-defined]
    await bench.passing(second)
    assert one.begun == 2


KEYS = {"provider/a": "k1", "provider/a#2": "k2", "provider/a#3": "k3"}


async def test_a_fault_of_the_service_is_not_tried_with_every_key() -> None:
    one = Upstream("a", usual=Fails(ProviderFault.SERVER))
    bench = Bench([one], vault=KEYS)
    await failed(bench)
    assert len(one.requests) == 3


@pytest.mark.setting("attempts.most_calls")
async def test_a_message_has_only_so_many_calls() -> None:
    many = {f"provider/a#{n}": f"k{n}" for n in range(2, 12)}
    one = Upstream("a", usual=Fails(ProviderFault.AUTH))
    bench = Bench([one], vault={**KEYS, **many})
    await failed(bench)
    assert len(one.requests) == 8
    few = Bench([one], {"attempts": {"most_calls": 2}}, {**KEYS, **many})
    one.requests.clear()
    await failed(few)
    assert len(one.requests) == 2
    assert Patience(1, 1).rounds == 1


@pytest.mark.setting("attempts.keys")
@pytest.mark.parametrize(
    ("policy", "uses"),
    [
        ("in_order", {"k1": 12}),
        ("round_robin", {"k1": 4, "k2": 4, "k3": 4}),
        ("least_used", {"k1": 4, "k2": 4, "k3": 4}),
    ],
)
async def test_keys_are_spread_as_configured(policy: str, uses: dict[str, int]) -> None:
    one = Upstream("a")
    bench = Bench([one], {"attempts": {"keys": policy}}, KEYS)
    for _ in range(12):
        await bench.ask("a", bench.payer())
    assert Counter(one.keys) == uses


async def test_a_resting_key_is_passed_by_whatever_the_policy() -> None:
    one = Upstream("a", by_key={"k2": deque([Fails(ProviderFault.AUTH)])})
    bench = Bench([one], {"attempts": {"keys": "round_robin"}}, KEYS)
    for _ in range(9):
        await bench.ask("a", bench.payer())
    assert Counter(one.keys)["k2"] == 1


async def test_who_rests_is_told() -> None:
    bench = Bench([Upstream("a", usual=HOUR), Upstream("b")])
    await failed(bench)
    ((model, key, fault, seconds),) = bench.models.resting("a")
    assert (model, key, fault) == ("a-model", 0, "rate_limited")
    assert 3_590 < seconds <= 3_600
    assert bench.models.resting("b") == []


async def test_a_client_is_told_what_failed(daemon: RunningDaemon) -> None:
    daemon.model.fails(ProviderFault.BILLING)
    answer = await (await daemon.agent()).send("hello")
    assert (answer.status_code, answer.json()["code"]) == (500, "billing")
    assert "retry_after" not in answer.json()


async def test_no_half_of_any_key_of_the_vault_is_in_an_error() -> None:
    key = "AKIA0123456789ABCDEF:wJalrXUtnFEMIK7MDENGbPxRfiCY"

    class Talks(Upstream):
        async def stream(self, call: Any) -> Any:
            self.requests.append(call.request)
            said = f"no such key {key.partition(':')[2]}"
            raise ProviderError(ProviderFault.AUTH, "a", said)
            yield

    bench = Bench([Talks("a")], vault={"provider/other": key})
    assert "wJalrXUt" not in (await failed(bench)).message
