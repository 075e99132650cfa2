"""Routing as turns see it: nothing told twice, no tool run twice, money kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from agenthost import (
    Context,
    ProviderError,
    ProviderFault,
    QuotaExceeded,
    Spent,
    TextDelta,
    Turn,
    TurnOptions,
    Usage,
    user_message,
)
from agenthost.context import OPERATOR
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.testing.scripted import Pause, ScriptedModel

from .upstream import Fails, Upstream

SPARE = '[[fallback_models]]\nprovider = "spare"\n'


async def ledger(host: RunningDaemon, agent_id: str) -> tuple[int, int]:
    total = await host.daemon.usage.of_agent(agent_id)
    return total.requests, total.cost_micro_usd


async def with_spare(daemons: Daemons, config: str = "") -> RunningDaemon:
    spare = Upstream("spare", usual="from the spare")
    host = await daemons.start(plugins=[spare.plugin], config=config)
    host.model.spare = spare  # type: ignore[attr-defined]
    return host


async def test_a_failover_inside_a_tool_loop_runs_no_tool_twice(
    daemons: Daemons,
) -> None:
    host = await with_spare(daemons)
    host.model.calls("kv_set", key="self.n", value="1")
    host.model.fails(ProviderFault.BILLING)
    agent = await host.agent(extra=SPARE)
    turn = agent.start("count")
    seen: list[Any] = [event async for event in turn.turn.events()]
    assert (await turn.result()).text == "from the spare"
    names = [type(event).__name__ for event in seen]
    assert names.count("ToolStart") == names.count("ToolEnd") == 1
    said = "".join(event.text for event in seen if isinstance(event, TextDelta))
    assert said == "from the spare"
    spare: Upstream = host.model.spare  # type: ignore[attr-defined]
    (request,) = spare.requests
    assert [m.role.value for m in request.messages] == ["user", "assistant", "tool"]


async def test_the_ledger_names_the_model_that_answered(daemons: Daemons) -> None:
    host = await with_spare(daemons, '[[fallback_providers]]\nprovider = "spare"\n')
    host.model.fails(ProviderFault.AUTH)
    agent = await host.agent()
    result = await agent.start("hello").result()
    assert result.text == "from the spare"
    assert await ledger(host, agent.id) == (1, result.cost_micro_usd)


async def test_words_that_broke_off_before_a_watcher_fail_the_turn_and_are_paid(
    daemons: Daemons,
) -> None:
    host = await with_spare(daemons)
    host.model.fails(ProviderFault.SERVER, "half ")
    agent = await host.agent(extra=SPARE)
    turn = agent.start("hello")
    turn.turn.watch()
    with pytest.raises(ProviderError):
        await turn.result()
    await host.daemon.usage.since(0, 1)
    requests, cost = await ledger(host, agent.id)
    assert requests == 1
    assert cost > 0


async def test_words_that_nobody_heard_are_said_anew_by_a_spare(
    daemons: Daemons,
) -> None:
    host = await with_spare(daemons)
    host.model.fails(ProviderFault.SERVER, "half of ")
    agent = await host.agent(extra=SPARE)
    assert await agent.ask("hello") == "from the spare"
    said = [m["content"] for m in (await agent.session())["messages"]]
    assert said == ["hello", "from the spare"]
    requests, _ = await ledger(host, agent.id)
    assert requests == 2


async def test_half_an_answer_that_nobody_heard_is_not_kept(
    daemon: RunningDaemon,
) -> None:
    daemon.model.fails(ProviderFault.SERVER, "half of ")
    for _ in range(9):
        daemon.model.fails(ProviderFault.BAD_REQUEST, "and ")
    agent = await daemon.agent()
    answer = await agent.send("hello")
    assert (answer.status_code, answer.json()["code"]) == (500, "bad_request")
    said = [m["content"] for m in (await agent.session())["messages"]]
    assert said == ["hello"]


async def test_a_runs_limit_holds_for_the_agents_it_calls(
    daemon: RunningDaemon,
) -> None:
    caller, callee = await daemon.agent("caller"), await daemon.agent("callee")
    daemon.model.calls("agent_call", agent_id="callee", message="hi")
    host = daemon.daemon
    turn = host.turns.start(
        Context(OPERATOR),
        host.agents.get(caller.id),
        user_message("go"),
        TurnOptions(max_cost_micro_usd=25_000, max_tokens=1_000),
    )
    await asyncio.wait({turn.task} if turn.task else set())
    (pool,) = turn.context.pools
    _, first = await ledger(daemon, caller.id)
    _, second = await ledger(daemon, callee.id)
    assert second > 0
    assert pool.used == first + second
    assert pool.held == 0


async def test_a_run_without_room_is_refused(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    host = daemon.daemon
    turn = host.turns.start(
        Context(OPERATOR),
        host.agents.get(agent.id),
        user_message("go"),
        TurnOptions(max_cost_micro_usd=1),
    )
    with pytest.raises(QuotaExceeded, match="max_cost_micro_usd"):
        await turn.result()
    assert daemon.model.requests == []


@pytest.mark.manifest("thinking.budget_tokens")
@pytest.mark.parametrize(
    ("manifest", "switched", "budget"),
    [
        ("", False, None),
        ("", True, 10_000),
        ("[thinking]\nbudget_tokens = 2048\n", False, 2_048),
        ("[thinking]\nbudget_tokens = 2048\n", True, 2_048),
        ("[thinking]\nbudget_tokens = 0\n", False, 0),
        ("[thinking]\nbudget_tokens = 0\n", True, 10_000),
    ],
)
async def test_the_manifest_and_the_switch_set_the_thinking_budget(
    daemon: RunningDaemon, manifest: str, switched: bool, budget: int | None
) -> None:
    agent = await daemon.agent(extra=manifest)
    known = daemon.daemon.agents.get(agent.id)
    await daemon.daemon.sessions.set_thinking(known.session_id, on=switched)
    await agent.ask("ponder")
    assert daemon.model.requests[0].thinking_budget == budget


async def test_a_budget_of_the_daemon_survives_a_restart(
    daemons: Daemons, tmp_path: Any
) -> None:
    home, config = tmp_path / "kept", "[budget]\nmax_daily_usd = 0.002\n"
    first = await daemons.start(home=home, config=config)
    agent = await first.agent()
    for _ in range(10):
        first.model.says("dear", usage=Usage(10, 100))
        answer = await agent.send("hi")
    assert answer.status_code == 429
    await first.daemon.stop()
    again = await daemons.start(home=home)
    answer = await again.known_agent(agent.name).send("hi")
    assert answer.status_code == 429
    assert "budget.max_daily_usd" in answer.json()["error"]


async def test_a_faulty_spare_is_no_reason_to_fail(daemons: Daemons) -> None:
    host = await with_spare(daemons)
    spare: Upstream = host.model.spare  # type: ignore[attr-defined]
    spare.usual = Fails(ProviderFault.BAD_REQUEST)
    agent = await host.agent(extra='[[fallback_models]]\nprovider = "nobody"\n' + SPARE)
    assert await agent.ask("hi") == "You said: hi"


SCENES: dict[str, Callable[[ScriptedModel], None]] = {
    "answers": lambda model: model.says("words", usage=Usage(100, 50, 20)),
    "calls": lambda model: model.calls("kv_set", key="self.n", value="1"),
    "refuses": lambda model: model.fails(ProviderFault.AUTH),
    "stalls": lambda model: model.fails(ProviderFault.TIMEOUT),
    "breaks off": lambda model: model.fails(ProviderFault.SERVER, "half of it"),
    "is blocked": lambda model: model.fails(ProviderFault.CONTENT_BLOCKED),
}
QUICK = frozenset({"answers", "breaks off"})
"""What follows each of them at every change."""


@pytest.mark.parametrize("first", SCENES)
@pytest.mark.parametrize(
    "second",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.conformance)
        for name in SCENES
    ],
)
async def test_a_turn_tells_what_the_ledger_tells(
    daemons: Daemons, first: str, second: str
) -> None:
    host = await with_spare(daemons)
    agent = await host.agent(extra=SPARE)
    SCENES[first](host.model)
    SCENES[second](host.model)
    for _ in range(2):
        turn = agent.start("hi").turn
        with suppress(ProviderError):
            await turn.result()
        await asyncio.wait({turn.task} if turn.task else set())
        assert await told(host, turn.id) == await booked(host, turn.agent.id, turn.id)


async def test_a_stopped_turn_tells_what_the_ledger_tells(
    daemon: RunningDaemon,
) -> None:
    agent, pause = await daemon.agent(), Pause()
    daemon.model.says("half of it", pause)
    turn = agent.start("hi").turn
    await pause.reached.wait()
    turn.cancel("enough")
    await asyncio.wait({turn.task} if turn.task else set())
    assert (
        await told(daemon, turn.id)
        == await booked(daemon, turn.agent.id, turn.id)
        != (0, 0, 0)
    )


async def test_a_resumed_turn_goes_on_with_what_it_had_spent(
    daemon: RunningDaemon,
) -> None:
    agent, host = await daemon.agent(), daemon.daemon

    def start(limit: int) -> Turn:
        return host.turns.start(
            Context(OPERATOR),
            host.agents.get(agent.id),
            user_message("go"),
            TurnOptions(turn_id="once", max_cost_micro_usd=limit),
        )

    daemon.model.fails(ProviderFault.BAD_REQUEST, "half of it")
    with pytest.raises(ProviderError):
        await start(50_000).result()
    before = await host.usage.of_turn(agent.id, "once")
    assert before.cost_micro_usd > 0
    lost = Spent(0.0, agent.id, "", "once", "scripted", "m", Usage(7, 8), 5_000)
    await host.usage.book(lost)
    spent = before.cost_micro_usd + 5_000
    with pytest.raises(QuotaExceeded, match=rf"\${spent / 1_000_000:.6f} used"):
        await start(spent + 500).result()
    result = await start(50_000).result()
    assert result.cost_micro_usd == before.cost_micro_usd + 5_000 + 20
    assert await told(daemon, "once") == await booked(daemon, agent.id, "once")


async def told(host: RunningDaemon, turn_id: str) -> tuple[int, int, int]:
    known = await host.daemon.journal.find(turn_id)
    assert known is not None
    used, cost = known.result.usage, known.result.cost_micro_usd
    return used.input_tokens, used.output_tokens, cost


async def booked(
    host: RunningDaemon, agent_id: str, turn_id: str
) -> tuple[int, int, int]:
    total = await host.daemon.usage.of_turn(agent_id, turn_id)
    return total.input_tokens, total.output_tokens, total.cost_micro_usd
