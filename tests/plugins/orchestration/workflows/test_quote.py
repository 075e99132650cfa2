"""A quote tells what a run would cost, and asks nobody."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost.testing import RunningDaemon
from agenthost_orchestration.workflows.quote import LONGEST, filled

from .test_definitions import made

ADA = {"agent_name": "ada"}


async def quoted(
    daemon: RunningDaemon, *steps: dict[str, Any], text: str = "hi", **body: Any
) -> dict[str, Any]:
    id_ = await made(daemon, steps=list(steps), **body)
    path = f"/api/workflows/{id_}/quote"
    answer = await daemon.http.post(path, json={"input": text})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_quote_asks_no_model_and_sums_its_steps(daemon: RunningDaemon) -> None:
    agent = await daemon.agent("ada")
    await daemon.agent("bob")
    told = await quoted(
        daemon,
        {**ADA, "name": "write"},
        {"agent_name": "bob", "prompt": "Sum up: {{input}}"},
        max_cost_usd=0.5,
    )
    assert daemon.model.requests == []
    assert (await daemon.daemon.usage.of_agent(agent.id)).requests == 0
    first, second = told["steps"]
    assert (first["name"], first["agent_name"]) == ("write", "ada")
    assert (first["turns"], first["problem"], told["complete"]) == (1, None, True)
    for name in ("most_cost_usd", "likely_cost_usd"):
        assert told[name] == pytest.approx(first[name] + second[name])
    assert told["max_cost_usd"] == 0.5
    assert 0 < told["likely_cost_usd"] <= told["most_cost_usd"]
    # The step alone is priced as a message of the same words is.
    path = f"/api/agents/{agent.id}/quote"
    alone = (await daemon.http.post(path, json={"message": "hi"})).json()
    assert first["next_call"] == alone["next_call"]
    assert first["turn"] == alone["turn"]


async def test_what_a_step_hands_on_is_priced_in_the_next(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    named = {**ADA, "output_var": "draft", "mode": "fan_out"}
    collect = {"mode": "collect", "output_var": "all"}
    told = await quoted(
        daemon,
        named,
        {**ADA, "mode": "fan_out"},
        {**ADA, "prompt": "no more"},
        {**ADA, "prompt": "{{draft}}"},
        {**named, "output_var": "two"},
        {**ADA, "mode": "fan_out"},
        collect,
        {**ADA, "prompt": "{{all}}"},
    )
    tokens = [s["next_call"]["input_tokens"] for s in told["steps"] if s["next_call"]]
    most = told["steps"][0]["next_call"]["output_tokens"]
    first, beside, plain, draft, _, _, both = tokens
    assert first == beside < plain
    assert draft > first + most
    assert both > draft + most
    assert told["steps"][6]["model"] is None
    assert told["steps"][6]["most_cost_usd"] == 0


async def test_the_last_of_a_group_is_handed_on_where_nothing_collects(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    group = {**ADA, "mode": "fan_out"}
    told = (await quoted(daemon, group, group, ADA))["steps"]
    one, beside, after = [step["next_call"]["input_tokens"] for step in told]
    assert one == beside
    assert after > one + told[0]["next_call"]["output_tokens"]


async def test_what_a_condition_lets_pass_is_handed_on_too(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    step = {**ADA, "mode": "conditional", "condition": "x"}
    told = (await quoted(daemon, step, ADA, ADA, text="x" * 60_000))["steps"]
    first, second, third = [step["next_call"]["input_tokens"] for step in told]
    assert first == second > 60_000 > third


def test_no_more_is_put_into_a_prompt_than_is_priced() -> None:
    class Counting(dict[str, str]):
        put = 0

        def get(self, *given: Any) -> Any:
            self.put += 1
            return super().get(*given)

    known = Counting(a="x" * LONGEST)
    assert filled("{{a}}" * 13_000, known) == "x" * LONGEST
    assert known.put < 3
    assert filled("ü" * LONGEST, known) == "ü" * (LONGEST // 2)
    assert filled("{{b}} {{a", known) == "{{b}} {{a"


async def test_loops_and_retries_count_at_their_most(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    loop = {**ADA, "mode": "loop", "until": "x", "max_iterations": 4}
    retry = {"error_mode": "retry", "max_retries": 2}
    # Retries that are not made, and iterations of what is no loop, count nothing.
    idle = {**ADA, "max_retries": 9, "max_iterations": 9}
    steps = idle, {**loop, **retry}, {**ADA, **retry}
    told = (await quoted(daemon, *({**s, "prompt": "go"} for s in steps)))["steps"]
    assert [step["turns"] for step in told] == [1, 12, 3]
    one = told[0]
    for step, turns, likely in zip(told, (1, 12, 3), (1, 4, 1), strict=True):
        assert step["most_cost_usd"] == pytest.approx(one["most_cost_usd"] * turns)
        assert step["likely_cost_usd"] == pytest.approx(one["likely_cost_usd"] * likely)


async def test_a_session_is_read_where_a_step_speaks_in_it(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    await agent.ask("a long story " * 200)
    told = await quoted(daemon, ADA, {**ADA, "prompt": "hi", "shared_session": True})
    new, own = [step["next_call"]["input_tokens"] for step in told["steps"]]
    assert own > new + 2_000


async def test_an_agent_that_is_not_there_leaves_a_hole_that_is_told(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    told = await quoted(daemon, {"agent_name": "nobody"}, ADA)
    first, second = told["steps"]
    assert first["problem"] == "agent not found: nobody"
    assert (first["next_call"], first["turn"], first["model"]) == (None, None, None)
    assert told["complete"] is False
    assert told["most_cost_usd"] == second["most_cost_usd"] > 0


async def test_what_would_grow_without_end_is_priced_up_to_a_bound(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    prompt = "{{a}}" * 10_000
    told = await quoted(daemon, {**ADA, "output_var": "a"}, {**ADA, "prompt": prompt})
    assert told["complete"], told["steps"][1]["problem"]
    tokens = told["steps"][1]["next_call"]["input_tokens"]
    assert 65_536 < tokens < 75_000


@pytest.mark.parametrize("body", [{"input": 5}, {"input": "x" * 70_000}, []])
async def test_a_quote_of_nonsense_is_refused(daemon: RunningDaemon, body: Any) -> None:
    path = f"/api/workflows/{await made(daemon)}/quote"
    assert (await daemon.http.post(path, json=body)).status_code == 400
