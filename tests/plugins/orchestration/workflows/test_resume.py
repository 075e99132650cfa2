"""Runs that outlive their daemon: each goes on at its first unfinished step."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from agenthost import OPERATOR, Context, Json, Pool, RunningJob, Usage
from agenthost.testing.daemons import RunningDaemon, running_daemon
from agenthost.testing.scripted import Pause
from agenthost_orchestration.workflows.definition import Workflow
from agenthost_orchestration.workflows.run_jobs import RunJobs
from sqlalchemy import text

from .stage import asked, comes, detail, orchestration, run, step, workflow


class Lives:
    """One home, and a daemon on it at a time."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.config = ""
        self._stack = AsyncExitStack()

    async def start(self) -> RunningDaemon:
        """Start the next daemon."""
        running = running_daemon(
            self._home, config=self.config, environ={}, plugins=(), clock=None
        )
        self._daemon = await self._stack.enter_async_context(running)
        return self._daemon

    async def end(self) -> None:
        """Stop it in order, with little patience for turns that stand still."""
        with patch("agenthost.daemon.TURN_PATIENCE", 0.05):
            # First itself: the client that comes with it is to hear of its end.
            await self._daemon.daemon.stop()
            await self._stack.aclose()


@pytest.fixture
async def lives(tmp_path: Path) -> Any:
    lives = Lives(tmp_path / "home")
    yield lives
    await lives.end()


async def begin(daemon: RunningDaemon, flow: Workflow, **how: Any) -> str:
    """Ask for a run without waiting for it."""
    runs = orchestration(daemon).runs
    return await runs.start(Context(OPERATOR), flow, "x", **how)


async def finished(daemon: RunningDaemon, run_id: str) -> dict[str, Any]:
    """Wait for a run's end and show it."""
    await orchestration(daemon).runs.wait(run_id)
    return await detail(daemon, run_id)


async def test_a_run_that_a_stop_cut_short_goes_on_where_it_was(lives: Lives) -> None:
    first = await lives.start()
    await first.agent()
    flow, pause = (
        workflow(step("one"), step("two", output_var="two"), step("3")),
        Pause(),
    )
    first.model.says("done one")
    first.model.says(pause, "never")
    waiting = asyncio.create_task(run(first, flow, "x"))
    await pause.reached.wait()
    ending = asyncio.create_task(lives.end())
    answer = await waiting
    await ending
    assert answer.status_code == 503
    assert answer.json()["code"] == "interrupted"
    assert answer.headers["retry-after"]
    second = await lives.start()
    told = await finished(second, answer.json()["run_id"])
    assert told["state"] == "Completed"
    assert [each["output"] for each in told["steps"]] == [
        "done one",
        "You said: done one",
        "You said: You said: done one",
    ]
    # The first step was not asked again.
    assert asked(second) == ["done one", "You said: done one"]


@pytest.mark.conformance
async def test_branches_that_had_ended_are_not_asked_again(lives: Lives) -> None:
    first = await lives.start()
    await first.agent("quick")
    await first.agent("slow")
    flow = workflow(
        step("a", "a", mode="fan_out", agent_name="slow"),
        step("b", "b", mode="fan_out", agent_name="quick"),
        step("all", mode="collect"),
    )
    pause = Pause()
    first.model.says(pause, "never")
    run_id = await begin(first, flow)
    await pause.reached.wait()

    async def one_is_done() -> bool:
        return bool((await detail(first, run_id))["steps_completed"])

    await comes(one_is_done, "the other branch has ended")
    (done,) = (await detail(first, run_id))["steps"]
    await lives.end()
    second = await lives.start()
    told = await finished(second, run_id)
    assert told["state"] == "Completed"
    assert asked(second) == [{"a": "b", "b": "a"}[done["name"]]]


@pytest.mark.conformance
async def test_what_was_spent_before_counts_for_the_limit(lives: Lives) -> None:
    lives.config = '[workflows]\nover_cost = "refuse"\n'
    first = await lives.start()
    await first.agent()
    flow, pause = workflow(step("one"), step("two"), step("three")), Pause()
    first.model.says("one", usage=Usage(0, 450_000))
    first.model.says(pause, "never")
    run_id = await begin(first, flow, within=Pool(1_000_000))
    await pause.reached.wait()
    await lives.end()
    ready, do = asyncio.Event(), RunJobs._do

    async def once_ready(jobs: RunJobs, job: RunningJob) -> Json:
        # A start takes the run up at once, and may ask before the model is told.
        await ready.wait()
        return await do(jobs, job)

    with patch.object(RunJobs, "_do", once_ready):
        second = await lives.start()
    second.model.says("two", usage=Usage(0, 100_000))
    ready.set()
    told = await finished(second, run_id)
    assert (told["state"], told["code"]) == ("Failed", "quota_exceeded")
    assert told["steps_completed"] == 2
    # What the call took that was cut off is booked at its most.
    assert 1.1 <= told["cost_usd"] < 1.11


@pytest.mark.conformance
async def test_a_run_whose_job_was_never_submitted_is_done(lives: Lives) -> None:
    first = await lives.start()
    await first.agent()
    with patch("agenthost_orchestration.workflows.run_jobs.RunJobs.submit"):
        run_id = await begin(first, workflow(step("one")))
    await lives.end()
    second = await lives.start()
    assert (await finished(second, run_id))["state"] == "Completed"


async def parked(lives: Lives) -> str:
    """Leave a run in its first step."""
    first = await lives.start()
    await first.agent()
    pause = Pause()
    first.model.says(pause, "never")
    run_id = await begin(first, workflow(step("one")))
    await pause.reached.wait()
    await lives.end()
    return run_id


async def poke(lives: Lives, statement: str) -> None:
    """Change rows between two lives of the area."""
    with patch.dict("os.environ"):
        running = running_daemon(
            lives._home,
            config='[plugins]\ndisable = ["orchestration"]\n',
            environ={},
            plugins=(),
            clock=None,
        )
        async with running as daemon:
            write = daemon.daemon.store.write
            await write(lambda connection: connection.execute(text(statement)).close())
    (lives._home / "config.toml").unlink()


@pytest.mark.conformance
async def test_a_run_that_kills_its_process_is_given_up(lives: Lives) -> None:
    run_id = await parked(lives)
    await poke(lives, "UPDATE job SET attempts = 3")
    second = await lives.start()
    told = await finished(second, run_id)
    assert told["state"] == "Failed"
    assert "the process died while it ran; it was tried 3 times" in told["error"]
    assert second.model.requests == []


@pytest.mark.parametrize(
    ("job", "state"),
    [
        ("poisoned", "Failed"),
        ("failed", "Failed"),
        ("cancelled", "Cancelled"),
        ("done", "Failed"),
    ],
)
@pytest.mark.conformance
async def test_no_run_stays_running_when_its_job_has_ended(
    lives: Lives, job: str, state: str
) -> None:
    run_id = await parked(lives)
    await poke(lives, f"UPDATE job SET state = '{job}', error = 'it burst'")
    second = await lives.start()
    assert (await finished(second, run_id))["state"] == state


@pytest.mark.conformance
async def test_what_fails_inside_is_tried_again_and_then_told(lives: Lives) -> None:
    daemon = await lives.start()
    with (
        patch(
            "agenthost_orchestration.workflows.course.walk", side_effect=KeyError("x")
        ),
        patch("agenthost_jobs.writes.pause", return_value=0.0),
    ):
        run_id = await begin(daemon, workflow(step("one")))
        told = await finished(daemon, run_id)
    assert told["state"] == "Failed"
    assert (
        told["error"]
        == "The run failed: the handler failed (KeyError); the log says more"
    )
