"""An agent's own schedules, through its tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from agenthost import UNTRUSTED, AgentHostError, Context, Reports, ToolContext
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_orchestration.schedules.tools import (
    ScheduleCreate,
    ScheduleDelete,
    ScheduleList,
    schedule_create,
    schedule_delete,
    schedule_list,
)

from .stage import Record, kept, made

TOOLS = ("schedule_create", "schedule_list", "schedule_delete")


def within(agent: RunningAgent, labels: frozenset[str] = frozenset()) -> ToolContext:
    context: Context = replace(agent.context(), labels=labels, depth=2)
    return ToolContext.of(context, agent.host.daemon, Reports())


async def make(context: ToolContext, **said: Any) -> dict[str, Any]:
    call = ScheduleCreate(
        **{"name": "look", "when": "every 10m", "prompt": "Look again.", **said}
    )
    result = await schedule_create(context, call)
    assert isinstance(result.structured, dict)
    return dict(result.structured)


async def test_an_agent_makes_lists_and_deletes_its_own(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = await daemon.agent("ada", tools=TOOLS)
    grace = await daemon.agent("grace", tools=TOOLS)
    own = within(ada, UNTRUSTED)
    row = await make(own)
    assert row["what"] == {"agent_id": ada.id, "prompt": "Look again."}
    assert (row["origin"], row["creator"]) == (
        "agent",
        {"kind": "agent", "name": "ada"},
    )
    assert (row["next_at"], row["session"]) == ("2026-01-01T00:10:00.000Z", "new")
    # What it was told by strangers then, it is told by them at that time as well.
    schedule = await kept(daemon.daemon).get(row["id"])
    assert schedule.errand.labels == UNTRUSTED
    # And events that lead in a ring by way of a schedule are counted on.
    assert schedule.errand.depth == 2
    listed = await schedule_list(own, ScheduleList())
    assert (json.loads(listed.text), listed.labels) == ([row], UNTRUSTED)
    assert (await schedule_list(within(grace), ScheduleList())).text == "[]"
    with pytest.raises(AgentHostError, match="only schedules that you have made"):
        await schedule_delete(within(grace), ScheduleDelete(id=row["id"]))
    by_person = await made(daemon, what={"agent": "ada", "prompt": "hi"})
    with pytest.raises(AgentHostError, match="only schedules that you have made"):
        await schedule_delete(own, ScheduleDelete(id=by_person["id"]))
    await schedule_delete(own, ScheduleDelete(id=row["id"]))
    with pytest.raises(AgentHostError, match="not found"):
        await schedule_delete(own, ScheduleDelete(id=row["id"]))


async def refused(daemon: RunningDaemon, context: ToolContext, **said: Any) -> str:
    before = (await daemon.http.get("/api/schedules")).json()["total"]
    with pytest.raises(AgentHostError) as raised:
        await make(context, **said)
    assert (await daemon.http.get("/api/schedules")).json()["total"] == before
    return raised.value.message


@pytest.mark.setting("schedules.max_per_agent")
async def test_an_agent_stays_within_its_limits(
    daemons: Daemons, record: Record
) -> None:
    config = "[schedules]\nmax_per_agent = 2\nallowance_usd = 0.2\n"
    daemon = await daemons.start(clock=ManualClock(), config=config)
    ada = within(await daemon.agent("ada", tools=TOOLS))
    assert "0.20 USD a day" in await refused(daemon, ada, allowance_usd=0.3)
    await make(ada, allowance_usd=0.15)
    assert "0.20 USD a day" in await refused(daemon, ada, allowance_usd=0.1)
    await make(ada)
    assert "which is the most" in await refused(daemon, ada, allowance_usd=0.01)
    # Another agent has limits of its own.
    await make(within(await daemon.agent("grace", tools=TOOLS)))


async def test_what_is_wrong_is_told_to_the_model(
    daemons: Daemons, record: Record
) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = within(await daemon.agent("ada", tools=TOOLS))
    for when, told in (
        ("every 1s", "must be 10 s"),
        ("every now and then", 'write "every 30s"'),
        ("tomorrow", "1 fields; use five"),
        ("2020-01-01T00:00:00Z", "no time lies ahead"),
        ("2027-01-01T00:00:00", "a moment needs its zone"),
        ("99 * * * *", "Bad minute"),
    ):
        assert told in await refused(daemon, ada, when=when), when
    assert "unknown zone" in await refused(daemon, ada, zone="Mars")


async def test_a_model_makes_one_in_a_turn(daemons: Daemons, record: Record) -> None:
    daemon = await daemons.start(clock=ManualClock())
    ada = await daemon.agent("ada", tools=TOOLS)
    moment = "2026-01-01T09:00:00Z"
    daemon.model.calls("schedule_create", name="tea", when=moment, prompt="Tea!")
    daemon.model.says("I will.")
    assert await ada.ask("Tell me about tea at nine.") == "I will."
    (row,) = (await daemon.http.get("/api/schedules")).json()["schedules"]
    assert (row["name"], row["when"]["at"]) == ("tea", "2026-01-01T09:00:00.000Z")
