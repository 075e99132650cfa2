"""Usage reports equal the ledger they are summed from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agenthost import Spent, Usage
from agenthost.testing import ManualClock
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost_records.tables import usage
from agenthost_records.usage import record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, delete

HOUR = 3_600
MID_MORNING = 1_767_225_600.0 + 10 * HOUR
PERIODS = {"hour": HOUR, "day": 24 * HOUR, "week": 168 * HOUR, "month": 720 * HOUR}

tokens = st.integers(0, 2_000_000)
spends = st.builds(
    Spent,
    at=st.integers(0, 800 * HOUR).map(float),
    agent_id=st.sampled_from(["a", "b", ""]),
    session_id=st.just("s"),
    turn_id=st.just("t"),
    provider=st.sampled_from(["p", "q"]),
    model=st.sampled_from(["m", "n"]),
    usage=st.builds(Usage, tokens, tokens),
    cost_micro_usd=st.integers(0, 10**9),
)
"""Calls; ``at`` is the age in seconds until it is written to a ledger."""


async def get(daemon: RunningDaemon, path: str) -> dict[str, Any]:
    answer = await daemon.http.get(path)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def replace_ledger(connection: Connection, rows: Sequence[Spent]) -> None:
    connection.execute(delete(usage))
    for row in rows:
        record(connection, row)


async def test_a_turn_is_reported_everywhere(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    daemon.model.says("hi", usage=Usage(1_000, 500))
    await agent.ask("hello")
    assert await get(daemon, "/api/usage") == {
        "period": "day",
        "total_input_tokens": 1_000,
        "total_output_tokens": 500,
        "total_cost_usd": 0.002,
        "request_count": 1,
        "active_agents": 1,
    }
    summary = await get(daemon, "/api/usage/summary")
    assert summary["today"] == {
        "input_tokens": 1_000,
        "output_tokens": 500,
        "cost_usd": 0.002,
        "requests": 1,
    }
    assert summary["quota"]["hourly_token_limit"] == 0
    assert summary["quota"]["hourly_tokens_used"] == 1_500
    assert await get(daemon, "/api/usage/by-model") == {
        "models": [
            {
                "model": "scripted-model",
                "provider": "scripted",
                "input_tokens": 1_000,
                "output_tokens": 500,
                "cost_usd": 0.002,
                "request_count": 1,
            }
        ]
    }


async def test_an_empty_ledger_sums_to_nothing(daemons: Daemons) -> None:
    limit = "[budget]\ndefault_max_llm_tokens_per_hour = 9000\n"
    daemon = await daemons.start(config=limit, clock=ManualClock())
    report = await get(daemon, "/api/usage?period=month")
    assert report == {
        "period": "month",
        "total_input_tokens": 0,
        "total_output_tokens": 0,
        "total_cost_usd": 0,
        "request_count": 0,
        "active_agents": 0,
    }
    quota = (await get(daemon, "/api/usage/summary"))["quota"]
    assert (quota["hourly_token_limit"], quota["hourly_tokens_used"]) == (9_000, 0)
    assert (await get(daemon, "/api/usage/by-model")) == {"models": []}


@pytest.mark.parametrize("period", ["year", "", "Day"])
async def test_an_unknown_period_is_refused(daemon: RunningDaemon, period: str) -> None:
    answer = await daemon.http.get(f"/api/usage?period={period}")
    assert answer.status_code == 400
    assert "period" in answer.json()["error"]


def test_every_report_is_the_sum_of_any_ledger(tmp_path: Path) -> None:
    with asyncio.Runner() as runner:
        daemons = Daemons(tmp_path)
        clock = ManualClock(MID_MORNING)
        daemon = runner.run(daemons.start(clock=clock))

        @settings(
            max_examples=25,
            deadline=None,
            suppress_health_check=[HealthCheck.function_scoped_fixture],
        )
        @given(st.lists(spends, max_size=30))
        def holds(aged: list[Spent]) -> None:
            runner.run(check(daemon, aged))

        try:
            holds()
        finally:
            runner.run(daemons.close())


async def check(daemon: RunningDaemon, aged: Sequence[Spent]) -> None:
    now = daemon.daemon.clock.time()
    rows = [
        Spent(
            now - row.at,
            row.agent_id,
            row.session_id,
            row.turn_id,
            row.provider,
            row.model,
            row.usage,
            row.cost_micro_usd,
        )
        for row in aged
    ]
    await daemon.daemon.store.write(lambda c: replace_ledger(c, rows))
    for period, seconds in PERIODS.items():
        within = [row for row in rows if row.at >= now - seconds]
        report = await get(daemon, f"/api/usage?period={period}")
        assert report["request_count"] == len(within)
        assert report["active_agents"] == len({row.agent_id for row in within} - {""})
        assert amounts(report, "total_") == expected(within)
    today = (await get(daemon, "/api/usage/summary"))["today"]
    midnight = now - now % (24 * HOUR)
    assert amounts(today) == expected([row for row in rows if row.at >= midnight])
    models = (await get(daemon, "/api/usage/by-model"))["models"]
    assert sum(model["request_count"] for model in models) == len(rows)
    for model in models:
        names = (model["provider"], model["model"])
        of_model = [row for row in rows if (row.provider, row.model) == names]
        assert amounts(model) == expected(of_model)


def amounts(report: dict[str, Any], prefix: str = "") -> tuple[int, int, int]:
    """Take input and output tokens and micro-dollars from a report."""
    return (
        report[f"{prefix}input_tokens"],
        report[f"{prefix}output_tokens"],
        round(report[f"{prefix}cost_usd"] * 1_000_000),
    )


def expected(rows: Sequence[Spent]) -> tuple[int, int, int]:
    return (
        sum(row.usage.input_tokens for row in rows),
        sum(row.usage.output_tokens for row in rows),
        sum(row.cost_micro_usd for row in rows),
    )
