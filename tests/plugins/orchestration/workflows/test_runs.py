"""Runs as their callers see them: once by a key, watched, cancelled, within limits."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from agenthost import OPERATOR, Context, Unavailable
from agenthost.testing import Daemons
from agenthost.testing.clock import ManualClock
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Pause
from agenthost_orchestration.workflows.run_events import (
    WorkflowRunEnded,
    WorkflowRunEvent,
    WorkflowRunStarted,
)

from .stage import (
    asked,
    comes,
    detail,
    only_run,
    orchestration,
    output,
    run,
    shelve,
    step,
    workflow,
)


async def no_sessions(daemon: RunningDaemon) -> bool:
    """Whether no session of a run is left."""
    left = "SELECT id FROM sessions WHERE ephemeral = 1"
    return not await daemon.daemon.store.read(left)


async def ended(daemon: RunningDaemon, run_id: str) -> dict[str, Any]:
    """Wait for a run's end and show it."""
    await orchestration(daemon).runs.wait(run_id)
    return await detail(daemon, run_id)


async def test_a_key_is_one_run_and_another_body_is_refused(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(step("one"))
    path, key = f"{await shelve(daemon, flow)}/run", {"Idempotency-Key": "k"}

    async def start(given: str) -> httpx.Response:
        return await daemon.http.post(path, json={"input": given}, headers=key)

    first, second = await asyncio.gather(start("a"), start("a"))
    assert first.json() == second.json()
    assert first.json()["output"] == "You said: a"
    assert len(daemon.model.requests) == 1
    other = await start("b")
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    empty = await daemon.http.post(path, json={}, headers={"Idempotency-Key": ""})
    assert empty.status_code == 400


@pytest.mark.conformance
async def test_a_run_that_nobody_waits_for_is_done(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    path = await shelve(daemon, workflow(step("one")))
    answer = await daemon.http.post(f"{path}/run?wait=false", json={"input": "a"})
    assert answer.status_code == 202
    told = answer.json()
    assert told["status"] == "running"
    assert answer.headers["location"] == f"/api/workflows/runs/{told['run_id']}"
    shown = await ended(daemon, told["run_id"])
    assert (shown["state"], shown["output"]) == ("Completed", "You said: a")


@pytest.mark.conformance
async def test_a_client_that_leaves_does_not_stop_the_run(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow, pause = workflow(step("one"), step("two")), Pause()
    daemon.model.says(pause, "late")
    leaving = asyncio.create_task(run(daemon, flow, "a"))
    await pause.reached.wait()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    pause.go_on()
    run_id = (await only_run(daemon, flow))["id"]
    assert (await ended(daemon, run_id))["output"] == "You said: late"


@pytest.mark.conformance
async def test_runs_are_listed_newest_first_page_by_page(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    flow = workflow()
    path = await shelve(daemon, flow)
    ids = []
    for _ in range(4):
        started = await run(daemon, flow)
        ids.append(started.json()["run_id"])
        if len(ids) != 2:
            await clock.advance(1.0)
    everything = (await daemon.http.get(f"{path}/runs")).json()
    assert {each["workflow_name"] for each in everything} == {"flow"}
    listed = [each["id"] for each in everything]
    assert listed[0] == ids[3]
    assert sorted(listed) == sorted(ids)
    first = (await daemon.http.get(f"{path}/runs?limit=2")).json()
    rest = (await daemon.http.get(f"{path}/runs?after={first[-1]['id']}")).json()
    assert [each["id"] for each in (*first, *rest)] == listed
    assert (await daemon.http.get(f"{path}/runs?limit=0")).status_code == 400


@pytest.mark.conformance
async def test_what_is_not_there_is_told(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await shelve(daemon, workflow())
    nobody = "00000000-0000-4000-8000-000000000000"
    for path in (f"{nobody}/runs", f"runs/{nobody}", f"runs/{nobody}/events"):
        assert (await daemon.http.get(f"/api/workflows/{path}")).status_code == 404
    for path in (f"{nobody}/run", f"runs/{nobody}/cancel"):
        answer = await daemon.http.post(f"/api/workflows/{path}", json={})
        assert answer.status_code == 404
    assert (await daemon.http.get("/api/workflows/x/runs")).status_code == 400


async def test_cancel_ends_a_run_with_its_turns(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow, pause = workflow(step("one"), step("two")), Pause()
    daemon.model.says(pause, "never")
    waiting = asyncio.create_task(run(daemon, flow, "a"))
    await pause.reached.wait()
    run_id = (await only_run(daemon, flow))["id"]
    answer = await daemon.http.post(f"/api/workflows/runs/{run_id}/cancel")
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "Cancelled"
    refused = await waiting
    assert refused.status_code == 409
    assert refused.json()["code"] == "cancelled"
    assert refused.json()["run_id"] == run_id
    again = await daemon.http.post(f"/api/workflows/runs/{run_id}/cancel")
    assert again.status_code == 409

    async def rests() -> bool:
        return daemon.daemon.turns.running == 0

    await comes(rests, "the turn has ended")
    await comes(lambda: no_sessions(daemon), "the sessions of the run are deleted")
    assert len(daemon.model.requests) == 1


@pytest.mark.conformance
async def test_a_cancelled_run_that_never_began_is_never_begun(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(step("one"))
    runs = orchestration(daemon).runs
    run_id = await runs.start(Context(OPERATOR), flow, "a")
    told = await runs.cancel(run_id, Context(OPERATOR))
    assert told.state == "Cancelled"
    assert await runs.wait(run_id) == told


async def test_a_step_that_takes_too_long_is_ended(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent()
    flow, pause = workflow(step("slow", timeout_secs=7)), Pause()
    daemon.model.says(pause, "never")
    waiting = asyncio.create_task(run(daemon, flow, "a"))
    await pause.reached.wait()
    await clock.advance(6.9)
    assert not waiting.done()
    await clock.advance(0.2)
    answer = await waiting
    assert answer.status_code == 500
    assert answer.json()["error"] == "Step 'slow' timed out after 7s"
    assert daemon.daemon.turns.running == 0


@pytest.mark.conformance
async def test_each_retry_has_its_whole_time(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent()
    flow = workflow(step("slow", timeout_secs=7, error_mode="retry", max_retries=1))
    pauses = [Pause(), Pause()]
    for pause in pauses:
        daemon.model.says(pause, "never")
    waiting = asyncio.create_task(run(daemon, flow, "a"))
    for pause in pauses:
        await pause.reached.wait()
        await clock.advance(6.9)
        assert not waiting.done()
        await clock.advance(0.2)
    answer = await waiting
    told = "Step 'slow' failed after 1 retries: timed out after 7s"
    assert answer.json()["error"] == told


@pytest.mark.setting("workflows.max_seconds")
@pytest.mark.conformance
async def test_a_run_may_take_no_longer_than_workflows_allow(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock, config="[workflows]\nmax_seconds = 60\n")
    await daemon.agent()
    flow, pause = workflow(step("slow", timeout_secs=600, error_mode="skip")), Pause()
    daemon.model.says(pause, "never")
    waiting = asyncio.create_task(run(daemon, flow, "a"))
    await pause.reached.wait()
    await clock.advance(61)
    answer = await waiting
    assert answer.json()["error"].startswith("the run took longer than 60 s")
    assert answer.json()["code"] == "timed_out"


@pytest.mark.conformance
async def test_branches_of_one_agent_run_side_by_side(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow = workflow(step("a", mode="fan_out"), step("b", mode="fan_out"))
    pauses = [Pause(), Pause()]
    for pause in pauses:
        daemon.model.says(pause, "said")
    waiting = asyncio.create_task(output(daemon, flow, "x"))
    # Both stand still at once.
    for pause in pauses:
        await pause.reached.wait()
    for pause in pauses:
        pause.go_on()
    assert await waiting == "said"


@pytest.mark.conformance
async def test_a_failed_branch_fails_the_run_once_all_have_ended(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    branches = (
        step("a", mode="fan_out", agent_name="nobody"),
        step("b", mode="fan_out"),
        step("c", mode="fan_out", agent_name="nobody", error_mode="skip"),
    )
    answer = await run(daemon, workflow(*branches), "x")
    assert answer.json()["error"] == "Step 'a' failed: agent not found: nobody"
    assert asked(daemon) == ["x"]


@pytest.mark.conformance
async def test_steps_speak_in_a_session_of_the_run_that_ends_with_it(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    agent = await daemon.agent()
    flow = workflow(step("one"), step("two"), step("own", shared_session=True))
    await output(daemon, flow, "x")
    lengths = [len(request.messages) for request in daemon.model.requests]
    # The second step knows of the first, the third of neither.
    assert lengths[1] == lengths[0] + 2
    assert lengths[2] == lengths[0]
    assert (await agent.session())["message_count"] == 2
    await comes(lambda: no_sessions(daemon), "the sessions of the run are deleted")


@pytest.mark.conformance
@pytest.mark.setting("workflows.over_cost")
async def test_the_smaller_limit_holds_for_all_that_a_run_spends(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config='[workflows]\nover_cost = "refuse"\n')
    await daemon.agent("helper")
    await daemon.agent()
    steps = (step("one"), step("two"), step("three"))
    poor = workflow(*steps, max_cost=10)
    answer = await run(daemon, poor, "x", max_cost_usd=1.0)
    assert answer.json()["code"] == "quota_exceeded"
    assert daemon.model.requests == []
    rich = workflow(*steps, max_cost=1_000_000)
    answer = await run(daemon, rich, "x", max_cost_usd=0.00001)
    assert answer.json()["code"] == "quota_exceeded"
    assert (await run(daemon, rich, "x", max_cost_usd=0.5)).status_code == 200


@pytest.mark.conformance
async def test_what_agents_take_that_a_step_has_asked_counts(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent("helper")
    await daemon.agent()
    flow = workflow(step("one"))
    daemon.model.calls("agent_call", agent_id="helper", message="help")
    daemon.model.says("helped")
    daemon.model.says("done")
    answer = await run(daemon, flow, "x", max_cost_usd=1.0)
    assert answer.json()["output"] == "done"
    told = await only_run(daemon, flow)
    # Two calls of its own, one of the helper: 20 micro-USD each.
    assert told["cost_usd"] == told["steps"][0]["cost_usd"] == 60 / 1e6
    assert told["max_cost_usd"] == 1.0


async def events(
    daemon: RunningDaemon, run_id: str, after: str = ""
) -> list[tuple[str, str, dict[str, Any]]]:
    """Read a run's events to the end: name, id and data."""
    found, name, id_ = [], "", ""
    path, last = f"/api/workflows/runs/{run_id}/events", {"Last-Event-ID": after}
    async with daemon.http.stream("GET", path, headers=last) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for line in answer.aiter_lines():
            key, _, said = line.partition(": ")
            if key == "event":
                name = said
            elif key == "id":
                id_ = said
            elif key == "data":
                found.append((name, id_, json.loads(said)))
                id_ = ""
    return found


async def test_events_tell_what_was_and_then_what_is(daemons: Daemons) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow, pause = workflow(step("one"), step("two")), Pause()
    daemon.model.says("first")
    daemon.model.says(pause, "second")
    path = f"{await shelve(daemon, flow)}/run?wait=false"
    run_id = (await daemon.http.post(path, json={"input": "x"})).json()["run_id"]
    await pause.reached.wait()
    live = asyncio.create_task(events(daemon, run_id))

    async def watched() -> bool:
        return bool(orchestration(daemon).runs._watchers._all)

    await comes(watched, "somebody watches")
    pause.go_on()
    told = await live
    assert [(name, id_) for name, id_, _ in told] == [
        ("step_started", ""),
        ("step_ended", "1"),
        ("step_started", ""),
        ("step_ended", "2"),
        ("run_ended", ""),
    ]
    assert told[1][2]["output"] == "first"
    assert told[-1][2]["state"] == "Completed"
    assert await events(daemon, run_id) == told
    assert await events(daemon, run_id, "1") == told[2:]
    assert await events(daemon, run_id, "99999999999999999999") == told


@pytest.mark.conformance
async def test_starts_and_ends_are_recorded_with_what_happened(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    heard: list[WorkflowRunEvent] = []
    kept: list[str] = []
    bus = daemon.daemon.events

    def recorder(event: WorkflowRunEvent) -> Any:
        return lambda _: kept.append(f"{event.kind} {event.id}")

    bus.record(recorder, WorkflowRunStarted, WorkflowRunEnded)
    bus.subscribe(heard.append, WorkflowRunStarted, WorkflowRunEnded)
    flow = workflow(step("one"))
    await output(daemon, flow, "x")
    assert kept == [f"{event.kind} {event.id}" for event in heard]
    assert [event.kind for event in heard] == [
        "workflow_run_started",
        "workflow_run_ended",
    ]
    end = heard[1]
    assert isinstance(end, WorkflowRunEnded)
    assert (end.state, end.cost_micro_usd, end.workflow) == ("Completed", 20, "flow")
    assert end.by == "loopback:loopback"


@pytest.mark.conformance
async def test_a_huge_input_is_refused(daemons: Daemons) -> None:
    daemon = await daemons.start()
    answer = await run(daemon, workflow(), "x" * 262_145)
    assert answer.status_code == 413
    assert "input: over the limit" in answer.json()["error"]


@pytest.mark.conformance
async def test_the_offline_provider_calculates_and_remembers_in_steps(
    daemons: Daemons,
) -> None:
    environ = {
        "AGENTHOST_DEFAULT_MODEL__PROVIDER": "offline",
        "AGENTHOST_DEFAULT_MODEL__MODEL": "offline",
    }
    daemon = await daemons.start(environ=environ)
    agent = await daemon.agent()
    flow = workflow(
        step("sum", "calculate {{input}}", output_var="sum"),
        step("keep", "remember answer is 42"),
        step("give", "recall answer"),
    )
    got = await output(daemon, flow, "6 * 7")
    told = await only_run(daemon, flow)
    assert "42" in told["steps"][0]["output"]
    assert "42" in got
    path = f"/api/memory/agents/{agent.id}/kv/answer"
    assert (await daemon.http.get(path)).json()["value"] == "42"


@pytest.mark.conformance
async def test_who_asks_again_after_an_error_gets_the_run_done(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    await daemon.agent()
    flow, runs = workflow(step("one")), orchestration(daemon).runs
    context = Context(OPERATOR)
    full = patch.object(daemon.daemon.jobs, "submit", side_effect=Unavailable("full"))
    with full, pytest.raises(Unavailable):
        await runs.start(context, flow, "a", key="k")
    run_id = await runs.start(context, flow, "a", key="k")
    assert (await runs.wait(run_id)).output == "You said: a"


@pytest.mark.conformance
async def test_runs_are_forgotten_long_after_their_end(daemons: Daemons) -> None:
    clock = ManualClock()
    daemon = await daemons.start(clock=clock)
    await daemon.agent()
    flow = workflow(step("one"))
    await output(daemon, flow, "a")
    old = (await only_run(daemon, flow))["id"]
    await clock.advance(91 * 86_400)
    await output(daemon, flow, "b")

    async def gone() -> bool:
        path = f"/api/workflows/runs/{old}"
        return (await daemon.http.get(path)).status_code == 404

    await comes(gone, "the old run is forgotten")
    records = await daemon.daemon.store.read("SELECT run_id FROM workflow_run_steps")
    assert len(records) == 1
