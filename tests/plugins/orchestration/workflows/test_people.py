"""Runs that wait for a person: without a job, and on once they have answered."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Pause

from tests.plugins.approvals.stage import TOOLS, Shop, answer, ask, listed

from .stage import comes, detail, orchestration, row, run, shelve, step, workflow

FLOW = (step("buy", "buy {{input}}"), step("tell", "tell {{input}}"))


async def shop_with_a_wish(
    daemons: Daemons, **where: Any
) -> tuple[RunningDaemon, Shop]:
    """A daemon whose model first wants what a person is asked about."""
    shop = Shop(asks={"pay": ask()})
    daemon = await daemons.start(plugins=shop.plugins, **where)
    await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay", amount=5)
    return daemon, shop


async def waiting(daemon: RunningDaemon) -> tuple[str, str]:
    """Start a run that comes to wait; give its id and the approval's."""
    told = await run(daemon, workflow(*FLOW), "bread")
    assert told.status_code == 202, told.text
    body = told.json()
    assert body["status"] == "waiting"
    (approval,) = await listed(daemon)
    assert body["waiting"] == [approval["turn_id"]]
    return body["run_id"], approval["id"]


async def no_job_runs(daemon: RunningDaemon) -> bool:
    """Whether the run holds no place among the jobs."""
    jobs = await daemon.daemon.jobs.list("workflow")
    return all(each.state == "done" for each in jobs)


async def test_a_run_waits_without_a_job_and_goes_on_when_answered(
    daemons: Daemons,
) -> None:
    daemon, shop = await shop_with_a_wish(daemons)
    run_id, approval = await waiting(daemon)
    await comes(lambda: no_job_runs(daemon), "no job waits")
    shown = await detail(daemon, run_id)
    assert (shown["state"], len(shown["waiting"])) == ("Running", 1)
    daemon.model.says("paid")
    assert (await answer(daemon, approval)).status_code == 200
    await ended(daemon, run_id)
    shown = await detail(daemon, run_id)
    assert (shown["state"], shown["output"]) == ("Completed", "You said: tell paid")
    assert shown["waiting"] == []
    assert shop.runs == [("pay", 5)]


async def ended(daemon: RunningDaemon, run_id: str) -> None:
    """Wait until the run's row says so."""

    async def over() -> bool:
        return (await row(daemon, run_id)).ended

    await comes(over, "the run has ended")


@pytest.mark.conformance
async def test_a_waiting_run_outlives_its_daemon(
    daemons: Daemons, tmp_path: Any
) -> None:
    home = tmp_path / "home"
    first, shop = await shop_with_a_wish(daemons, home=home)
    run_id, approval = await waiting(first)
    await first.http.aclose()
    await first.daemon.stop()
    second = await daemons.start(home=home, plugins=shop.plugins)
    assert (await row(second, run_id)).waiting
    second.model.says("paid")
    assert (await answer(second, approval)).status_code == 200
    await ended(second, run_id)
    assert (await row(second, run_id)).output == "You said: tell paid"
    assert shop.runs == [("pay", 5)]


@pytest.mark.conformance
async def test_a_turn_that_went_on_while_nobody_looked_is_not_waited_for(
    daemons: Daemons, tmp_path: Any
) -> None:
    home = tmp_path / "home"
    first, shop = await shop_with_a_wish(daemons, home=home)
    run_id, approval = await waiting(first)
    await first.http.aclose()
    await first.daemon.stop()
    off = {"AGENTHOST_PLUGINS__DISABLE": "plugin:orchestration"}
    second = await daemons.start(home=home, plugins=shop.plugins, environ=off)
    second.model.says("paid")
    await answer(second, approval)
    await comes(lambda: _is_paid(second), "the turn has gone on")
    await second.http.aclose()
    await second.daemon.stop()
    third = await daemons.start(home=home, plugins=shop.plugins)
    await ended(third, run_id)
    assert (await row(third, run_id)).output == "You said: tell paid"


async def _is_paid(daemon: RunningDaemon) -> bool:
    done = "SELECT id FROM turns WHERE state = 'done'"
    return bool(await daemon.daemon.store.read(done))


@pytest.mark.conformance
async def test_a_waiting_run_that_is_cancelled_withdraws_its_question(
    daemons: Daemons,
) -> None:
    daemon, shop = await shop_with_a_wish(daemons)
    run_id, approval = await waiting(daemon)
    told = await daemon.http.post(f"/api/workflows/runs/{run_id}/cancel")
    assert told.json()["state"] == "Cancelled"
    assert (await answer(daemon, approval)).status_code == 409
    assert shop.runs == []
    rows = await daemon.daemon.store.read("SELECT id FROM sessions WHERE ephemeral = 1")
    assert rows == []


@pytest.mark.conformance
async def test_a_branch_that_waits_is_cancelled_beside_one_that_runs(
    daemons: Daemons,
) -> None:
    daemon, shop = await shop_with_a_wish(daemons)
    pause = Pause()
    daemon.model.says("I am", pause, " done")
    branches = [step(name, name, mode="fan_out") for name in ("a", "b")]
    flow = workflow(*branches, step("all", mode="collect"))
    path = f"{await shelve(daemon, flow)}/run?wait=false"
    run_id = (await daemon.http.post(path, json={"input": ""})).json()["run_id"]

    async def is_asked() -> bool:
        return bool(await listed(daemon, state="pending"))

    await comes(is_asked, "one branch asks a person")
    await pause.reached.wait()
    told = await daemon.http.post(f"/api/workflows/runs/{run_id}/cancel")
    assert told.json()["state"] == "Cancelled"

    async def is_withdrawn() -> bool:
        return not await listed(daemon, state="pending")

    await comes(is_withdrawn, "its question is withdrawn")
    assert shop.runs == []


@pytest.mark.conformance
async def test_a_run_whose_agent_is_deleted_does_not_wait_for_ever(
    daemons: Daemons,
) -> None:
    daemon, _ = await shop_with_a_wish(daemons)
    run_id, _ = await waiting(daemon)
    agent = daemon.known_agent("tester")
    assert (await daemon.http.delete(f"/api/agents/{agent.id}")).status_code == 200
    await ended(daemon, run_id)
    assert (await row(daemon, run_id)).state == "Failed"


@pytest.mark.conformance
async def test_branches_beside_one_that_waits_go_on(daemons: Daemons) -> None:
    daemon, _ = await shop_with_a_wish(daemons)
    flow = workflow(
        step("a", "pay", mode="fan_out"),
        step("b", "say", mode="fan_out"),
        step("all", mode="collect"),
    )
    path = f"{await shelve(daemon, flow)}/run"
    told: httpx.Response = await daemon.http.post(path, json={"input": ""})
    assert told.json()["status"] == "waiting"
    run_id = told.json()["run_id"]
    assert (await row(daemon, run_id)).steps_completed == 1
    (approval,) = await listed(daemon)
    daemon.model.says("paid")
    await answer(daemon, approval["id"])
    await ended(daemon, run_id)
    # Which of the two asks the model first, and so wants to pay, is not said.
    said = set(str((await row(daemon, run_id)).output).split("\n\n---\n\n"))
    assert said in ({"paid", "You said: say"}, {"paid", "You said: pay"})


@pytest.mark.parametrize("verb", ["approve", "deny"])
@pytest.mark.conformance
async def test_an_answer_that_comes_at_once_is_not_missed(
    daemons: Daemons, verb: str
) -> None:
    daemon, _ = await shop_with_a_wish(daemons)
    daemon.model.says("so be it")
    flow = workflow(*FLOW)
    going = asyncio.create_task(run(daemon, flow, "bread"))

    async def is_asked() -> bool:
        return bool(await listed(daemon))

    await comes(is_asked, "a person is asked")
    (approval,) = await listed(daemon)
    await answer(daemon, approval["id"], verb)
    told = (await going).json()
    await ended(daemon, told["run_id"])
    assert (await row(daemon, told["run_id"])).output == "You said: tell so be it"
    assert orchestration(daemon).runs.under_way(told["run_id"]) is None
