"""Nobody spends more than the limits allow, however many spend at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from agenthost import (
    Answered,
    BudgetAlert,
    Payer,
    Pool,
    PoolSpent,
    ProviderFault,
    QuotaExceeded,
    Usage,
    as_json,
)
from agenthost_models.budget import MOST_TOLD
from hypothesis import given, settings
from hypothesis import strategies as st

from .bench import Bench
from .upstream import Fails, Upstream

DEAR = 1_000.0
"""Dollars a million tokens: a thousand micro-dollars a token."""


def dear(usage: Usage = Usage(20, 100)) -> Upstream:  # noqa: B008 - it is frozen
    return Upstream("a", usage=usage, input_cost=DEAR, output_cost=DEAR)


async def test_without_a_limit_nothing_is_read() -> None:
    bench = Bench([Upstream("a")])
    await bench.ask("a", bench.payer())
    assert bench.ledger.reads == 0


async def test_a_limit_is_read_once() -> None:
    bench = Bench([Upstream("a")], {"budget": {"max_hourly_usd": 1.0}})
    for _ in range(5):
        await bench.ask("a", bench.payer())
    assert bench.ledger.reads == 1


@pytest.mark.manifest(
    "resources.max_cost_per_hour_usd",
    "resources.max_cost_per_day_usd",
    "resources.max_cost_per_month_usd",
)
@pytest.mark.setting(
    "budget.max_hourly_usd",
    "budget.max_daily_usd",
    "budget.max_monthly_usd",
    "budget.default_max_llm_tokens_per_hour",
)
@pytest.mark.parametrize(
    ("config", "manifest", "name"),
    [
        ({"max_hourly_usd": 0.2}, "", "budget.max_hourly_usd"),
        ({"max_daily_usd": 0.2}, "", "budget.max_daily_usd"),
        ({"max_monthly_usd": 0.2}, "", "budget.max_monthly_usd"),
        ({}, "max_cost_per_hour_usd = 0.2", "resources.max_cost_per_hour_usd"),
        ({}, "max_cost_per_day_usd = 0.2", "resources.max_cost_per_day_usd"),
        ({}, "max_cost_per_month_usd = 0.2", "resources.max_cost_per_month_usd"),
        ({}, "max_llm_tokens_per_hour = 150", "resources.max_llm_tokens_per_hour"),
        (
            {"default_max_llm_tokens_per_hour": 150},
            "",
            "resources.max_llm_tokens_per_hour",
        ),
    ],
)
async def test_every_limit_refuses_and_says_what_helps(
    config: dict[str, Any], manifest: str, name: str
) -> None:
    bench = Bench([dear()], {"budget": config})
    payer = bench.payer(f"[resources]\n{manifest}\n")
    await bench.ask("a", payer, max_tokens=100)
    with pytest.raises(QuotaExceeded, match=rf"{name}.*used.*wait, or raise it"):
        await asyncio.wait_for(_until_refused(bench, payer), 30)


async def _until_refused(bench: Bench, payer: Any) -> None:
    for _ in range(3):
        await bench.ask("a", payer, max_tokens=100)


async def test_a_window_opens_again_and_survives_a_restart() -> None:
    bench = Bench([dear()], {"budget": {"max_hourly_usd": 0.2}})
    payer = bench.payer()
    await bench.ask("a", payer, max_tokens=100)
    bench.restart()
    with pytest.raises(QuotaExceeded):
        await bench.ask("a", payer, max_tokens=100)
    await bench.clock.advance(3_590)
    with pytest.raises(QuotaExceeded):
        await bench.ask("a", payer, max_tokens=100)
    await bench.clock.advance(30)
    await bench.ask("a", payer, max_tokens=100)


async def test_an_answer_is_shortened_to_what_can_be_paid() -> None:
    one = dear()
    bench = Bench([one], {"budget": {"max_hourly_usd": 1.0}})
    await bench.ask("a", bench.payer())
    asked = one.requests[0].max_tokens
    assert asked is not None
    assert 256 <= asked < 1_000


async def test_another_agents_limit_is_its_own() -> None:
    bench = Bench([dear()])
    manifest = "[resources]\nmax_cost_per_hour_usd = 0.2\n"
    await bench.ask("a", bench.payer(manifest, "anna"), max_tokens=100)
    await bench.ask("a", bench.payer(manifest, "berta"), max_tokens=100)
    with pytest.raises(QuotaExceeded, match="agent 'anna'"):
        await bench.ask("a", bench.payer(manifest, "anna"), max_tokens=100)


async def test_a_run_and_what_it_calls_draw_from_one_pool() -> None:
    bench = Bench([dear()])
    pool = Pool(250_000)
    await bench.ask("a", bench.payer(name="anna", pools=(pool,)), max_tokens=100)
    callee = bench.payer(name="berta", pools=(pool, Pool(10_000_000)))
    with pytest.raises(QuotaExceeded, match="max_cost_micro_usd"):
        await bench.ask("a", callee, max_tokens=200)
    assert (pool.used, pool.held) == (120_000, 0)


async def test_a_pool_that_only_counts_changes_nothing_of_a_call() -> None:
    one = Upstream("a", input_cost=DEAR, output_cost=DEAR)
    bench, pool = Bench([one]), Pool()
    await bench.ask("a", bench.payer(pools=(pool,)))
    spent = sum(row.cost_micro_usd for row in bench.ledger.rows)
    assert (pool.used, pool.held) == (spent, 0)
    assert spent > 0
    # Under a limit of money an answer would be given one too.
    assert one.requests[0].max_tokens is None


async def test_a_spent_pool_is_named_to_who_may_ask_for_more() -> None:
    bench, pool = Bench([Upstream("a", input_cost=DEAR, output_cost=DEAR)]), Pool(1)
    with pytest.raises(PoolSpent) as refused:
        await bench.ask("a", bench.payer(pools=(Pool(), pool)))
    assert refused.value.pool is pool
    assert pool.held == 0


async def test_the_watchman_is_told_once_a_window() -> None:
    bench = Bench([dear()], {"budget": {"max_hourly_usd": 0.5}})
    for _ in range(4):
        await bench.ask("a", bench.payer(), max_tokens=10)
    (event,) = bench.events
    assert isinstance(event, BudgetAlert)
    assert as_json(event) == {
        "kind": "budget_alert",
        "id": event.id,
        "subject": "daemon",
        "at": event.at,
        "by": "",
        "source": "",
        "depth": 0,
        "data": {
            "limit": "budget.max_hourly_usd",
            "unit": "micro_usd",
            "used": event.used,
            "of": 500_000,
        },
    }
    assert event.used >= 400_000
    await bench.clock.advance(4_000)
    for _ in range(4):
        await bench.ask("a", bench.payer(), max_tokens=10)
    assert len(bench.events) == 2


async def test_unknown_usage_is_estimated() -> None:
    bench = Bench([dear(Usage())])
    answered = await bench.ask("a", bench.payer())
    assert answered.spent.usage.input_tokens > 0
    assert answered.spent.usage.output_tokens > 0
    assert answered.spent.cost_micro_usd > 0


async def test_a_call_that_is_left_is_booked_and_given_back() -> None:
    bench = Bench([dear()], {"budget": {"max_hourly_usd": 5.0}})
    target = bench.models.resolve("a", None)
    from .upstream import ASKED

    stream = bench.models.stream(target, ASKED, bench.payer())
    await anext(stream)
    await stream.aclose()
    (row,) = bench.ledger.rows
    assert row.usage.output_tokens > 0
    (meter,) = await bench.models._budgets._daemon_meters()
    assert (meter.held, meter.used(0)) == (0, row.cost_micro_usd)


async def test_a_call_without_a_payer_is_booked_too() -> None:
    bench = Bench([dear()])
    answered = await bench.ask("a")
    assert bench.ledger.rows == [answered.spent]


OUTCOMES = st.one_of(
    st.builds(Fails, st.sampled_from([*ProviderFault]), st.sampled_from(["", "words"])),
    st.builds(Usage, st.integers(0, 10), st.integers(0, 300)),
)


class Moody(Upstream):
    """Takes its outcome from the test, after letting others run."""

    async def stream(self, call: Any) -> Any:
        mood = self.moods.pop() if self.moods else Usage(1, 1)  # type: ignore[attr-defined]
        for _ in range(self.steps.pop() if self.steps else 0):  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        if isinstance(mood, Fails):
            self.usual = mood
        else:
            spoken = min(mood.output_tokens, call.request.max_tokens or 10**9)
            self.usual, self.usage = "said", Usage(mood.input_tokens, spoken)
        async for delta in super().stream(call):
            yield delta


@settings(max_examples=100, deadline=None)
@given(
    moods=st.lists(OUTCOMES, max_size=40),
    steps=st.lists(st.integers(0, 6), max_size=40),
    limits=st.tuples(*[st.sampled_from([0.0, 0.3, 0.8, 2.0])] * 2),
    pool=st.none() | st.integers(0, 1_500_000),
    callers=st.integers(1, 12),
)
def test_settled_is_the_ledger_and_never_over_a_limit(
    moods: list[Fails | Usage],
    steps: list[int],
    limits: tuple[float, float],
    pool: int | None,
    callers: int,
) -> None:
    async def scenario() -> None:
        one = Moody("a", input_cost=DEAR, output_cost=DEAR)
        one.moods, one.steps = [*moods], [*steps]  # type: ignore[attr-defined]
        bench = Bench([one], {"budget": {"max_hourly_usd": limits[0]}})
        manifest = f"[resources]\nmax_cost_per_hour_usd = {limits[1]}\n"
        shared = Pool(pool) if pool is not None else None
        payer = bench.payer(manifest, pools=(shared,) if shared else ())

        async def caller() -> list[Answered | BaseException]:
            asks = [bench.ask("a", payer) for _ in range(3)]
            return [(await asyncio.gather(a, return_exceptions=True))[0] for a in asks]

        await bench.passing(asyncio.gather(*(caller() for _ in range(callers))))
        total = sum(row.cost_micro_usd for row in bench.ledger.rows)
        caps = [round(limit * 1_000_000) for limit in limits if limit]
        caps += [pool] if pool is not None else []
        assert all(total <= cap for cap in caps)
        if shared is not None:
            assert (shared.used, shared.held) == (total, 0)
        assert payer.agent is not None
        for meters in (
            await bench.models._budgets._daemon_meters(),
            await bench.models._budgets._agent_meters(payer.agent),
        ):
            for meter in meters:
                assert meter.held == 0
                assert meter.used(bench.clock.time()) == total

    asyncio.run(scenario())


async def test_a_monitor_is_told_of_the_agents_nearest_to_a_limit() -> None:
    bench = Bench([Upstream("a")])
    limit = "[resources]\nmax_cost_per_hour_usd = {}\n"
    near = [bench.payer(limit.format(0.005), name=f"near-{n}") for n in range(3)]
    far = [bench.payer(limit.format(1.0), name=f"far-{n}") for n in range(MOST_TOLD)]
    for payer in (*far, *near):
        await bench.ask("a", payer)
    told = {
        (labels["agent"], labels["kind"]): amount
        for name, labels, amount in bench.models.gauges()
        if name == "agent_budget_usd"
    }
    agents = {agent for agent, _ in told}
    assert len(agents) == MOST_TOLD + 1
    assert {"near-0", "near-1", "near-2", "other"} <= agents
    assert told["near-1", "limit"] == 0.005
    assert told["other", "limit"] == pytest.approx(3.0)
    assert told["other", "used"] == pytest.approx(3 * told["near-1", "used"])
    assert sum(amount for (_, kind), amount in told.items() if kind == "used") == (
        pytest.approx(sum(row.cost_micro_usd for row in bench.ledger.rows) / 1e6)
    )


async def test_a_child_spends_of_the_budgets_above_it_also_after_a_restart() -> None:
    """Also where it has no limit of its own, or they all spend at once."""
    bench = Bench([dear(Usage(10, 90))])
    limit = "[resources]\nmax_cost_per_day_usd = 0.35\n"
    top = bench.payer(limit, "top").agent
    assert top is not None
    middle = replace(top, id="middle", name="middle", parent="top")
    low = bench.payer("", "low").agent
    assert low is not None
    low = replace(low, parent="middle")
    bench.made = [top, replace(middle, manifest=low.manifest), low]
    payer = Payer(low, "turn")
    asking = [bench.ask("a", payer, max_tokens=90) for _ in range(5)]
    ends = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(isinstance(end, QuotaExceeded) for end in ends) == 2
    bench.restart()
    with pytest.raises(QuotaExceeded, match="agent 'top'"):
        await bench.ask("a", payer, max_tokens=90)
    with pytest.raises(QuotaExceeded, match="agent 'top'"):
        await bench.ask("a", Payer(top, "turn"), max_tokens=90)
