"""A run that has spent what it may asks a person for as much again."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import ToolUse, Usage
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Answer

from ...approvals.stage import Shop, answer, ask, listed, results
from .stage import comes, detail, row, run, step, workflow
from .test_people import ended

PATIENT = "[model]\nmax_tokens = 1000\n"
DEAR = Usage(1_000, 1_250)
"""3,500 micro-USD: what a run may spend here."""
STEPS = (step("one"), step("two"), step("three"))


async def over(
    daemon: RunningDaemon, *steps: Any, tools: tuple[str, ...] = ()
) -> tuple[str, dict[str, Any]]:
    """Have a run come to ask in its second step; give its id and the question."""
    await daemon.agent(tools=tools, extra=PATIENT)
    daemon.model.says("one is done", usage=DEAR)
    told = await run(daemon, workflow(*steps, max_cost=3_500), "x")
    assert (told.status_code, told.json()["status"]) == (202, "waiting"), told.text
    (question,) = await listed(daemon, state="pending")
    return told.json()["run_id"], question


async def test_a_yes_lets_a_run_go_on_at_the_step_that_waits(daemons: Daemons) -> None:
    daemon = await daemons.start()
    run_id, question = await over(daemon, *STEPS)
    assert question["expense"]["more_usd"] == 0.0035
    assert f"run {run_id} of the workflow 'flow'" in question["question"]
    assert len(daemon.model.requests) == 1
    assert (await answer(daemon, question["id"])).status_code == 200
    await ended(daemon, run_id)
    shown = await detail(daemon, run_id)
    assert (shown["state"], shown["steps_completed"]) == ("Completed", 3)
    assert len(daemon.model.requests) == 3
    assert shown["cost_usd"] == pytest.approx(0.0035 + 2 * 0.00002)


@pytest.mark.conformance
@pytest.mark.parametrize("mode", ["fail", "retry", "skip"])
async def test_a_no_is_not_asked_for_again(daemons: Daemons, mode: str) -> None:
    daemon = await daemons.start()
    steps = (step("one"), step("two", error_mode=mode, max_retries=3))
    run_id, question = await over(daemon, *steps)
    await answer(daemon, question["id"], "deny", reason="enough")
    await ended(daemon, run_id)
    shown = await detail(daemon, run_id)
    failed = [each for each in shown["steps"] if each["error"]]
    assert [each["code"] for each in failed] == ["not_granted"]
    assert "loopback:" in failed[0]["error"]
    assert "enough" in failed[0]["error"]
    assert shown["state"] == ("Completed" if mode == "skip" else "Failed")
    assert len(daemon.model.requests) == 1
    assert len(await listed(daemon)) == 1


@pytest.mark.conformance
@pytest.mark.setting("workflows.answer_seconds")
async def test_no_answer_in_time_fails_the_run(daemons: Daemons) -> None:
    clock = ManualClock()
    config = "[workflows]\nanswer_seconds = 60\n"
    daemon = await daemons.start(clock=clock, config=config)
    run_id, _ = await over(daemon, *STEPS)
    await clock.advance(61)
    await ended(daemon, run_id)
    assert (await row(daemon, run_id)).code == "not_granted"


@pytest.mark.conformance
async def test_steps_side_by_side_wait_behind_one_question(daemons: Daemons) -> None:
    daemon = await daemons.start()
    group = [step(name, mode="fan_out") for name in ("a", "b", "c")]
    run_id, question = await over(daemon, step("one"), *group)
    waiting = (await row(daemon, run_id)).waiting
    for turn_id in waiting:
        (seen,) = await listed(daemon, turn_id=turn_id)
        assert seen["id"] == question["id"]
    await answer(daemon, question["id"])
    await ended(daemon, run_id)
    assert (await row(daemon, run_id)).steps_completed == 4


@pytest.mark.conformance
@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_it_is_answered_after_a_start_too(daemons: Daemons, verb: str) -> None:
    first = await daemons.start()
    run_id, question = await over(first, *STEPS)
    home = first.daemon.home
    await first.daemon.stop()
    second = await daemons.start(home=home)
    await answer(second, question["id"], verb)
    await ended(second, run_id)
    state = (await row(second, run_id)).state
    assert state == ("Completed" if verb == "approve" else "Failed")


@pytest.mark.conformance
async def test_a_cancelled_run_withdraws_its_question(daemons: Daemons) -> None:
    daemon = await daemons.start()
    run_id, question = await over(daemon, *STEPS)
    path = f"/api/workflows/runs/{run_id}/cancel"
    assert (await daemon.http.post(path)).status_code == 200
    assert await listed(daemon, state="pending") == []
    assert (await answer(daemon, question["id"])).status_code == 409


@pytest.mark.conformance
@pytest.mark.parametrize("again", [False, True])
async def test_a_turn_that_a_person_let_go_on_draws_from_its_runs_pool(
    daemons: Daemons, *, again: bool
) -> None:
    """Also when it went on in another process than the one that it waited in."""
    shop = Shop(asks={"pay": ask()})
    daemon = await daemons.start(plugins=shop.plugins)
    await daemon.agent(tools=("pay", "look"), extra=PATIENT)
    daemon.model.calls("pay", amount=5)
    flow = workflow(step("buy"), step("tell"), max_cost=3_500)
    run_id = (await run(daemon, flow, "x")).json()["run_id"]
    (question,) = await listed(daemon)
    if again:
        home = daemon.daemon.home
        await daemon.daemon.stop()
        daemon = await daemons.start(home=home, plugins=shop.plugins)
    look = ToolUse("call_2", "look", {})
    daemon.model._answers.append(Answer(calls=(look,), usage=DEAR))
    await answer(daemon, question["id"])

    async def asks_for_money() -> bool:
        found = await listed(daemon, state="pending")
        return [each["kind"] for each in found] == ["expense"]

    await comes(asks_for_money, "the turn that went on asks for more itself")
    (money,) = await listed(daemon, state="pending")
    assert money["turn_id"] == question["turn_id"]
    assert money["expense"]["used_usd"] == pytest.approx(0.0035 + 0.00002)
    await answer(daemon, money["id"])
    await ended(daemon, run_id)
    assert (await detail(daemon, run_id))["cost_usd"] == pytest.approx(0.00356)


@pytest.mark.conformance
async def test_what_called_agents_take_counts_in_a_run_without_a_limit(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent("helper")
    await daemon.agent()
    daemon.model.calls("agent_call", agent_id="helper", message="help")
    daemon.model.says("helped", usage=DEAR)
    daemon.model.says("done")
    told = await run(daemon, workflow(step("one")), "x")
    shown = await detail(daemon, told.json()["run_id"])
    assert shown["cost_usd"] == pytest.approx(0.0035 + 2 * 0.00002)


@pytest.mark.conformance
async def test_an_agent_that_a_step_calls_asks_nobody(daemons: Daemons) -> None:
    """The step asks, when it needs more itself: its turn is the run's own."""
    daemon = await daemons.start()
    await daemon.agent("helper", extra=PATIENT)
    await daemon.agent(extra=PATIENT)
    asked = {"agent_id": "helper", "message": "help"}
    call = ToolUse("call_1", "agent_call", asked)
    daemon.model._answers.append(Answer(calls=(call,), usage=Usage(1_000, 1_200)))
    told = await run(daemon, workflow(step("one"), max_cost=5_500), "x")
    (question,) = await listed(daemon)
    assert question["agent_name"] == "tester"
    await answer(daemon, question["id"])
    await ended(daemon, told.json()["run_id"])
    assert "leaves no room" in results(daemon)[0]
