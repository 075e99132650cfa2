"""What the jobs plugin offers, and its work in a daemon."""

from __future__ import annotations

import asyncio
from pathlib import Path

import agenthost_jobs
from agenthost import JobState, Json, RunningJob
from agenthost.testing import Daemons


def test_register_backend_offers_the_embedded_queue() -> None:
    [spec] = agenthost_jobs.register_backend()
    assert (spec.port, spec.name) == ("jobs", "embedded")


def test_register_schema_offers_the_tables_of_jobs() -> None:
    spec = agenthost_jobs.register_schema()
    assert (spec.name, sorted(spec.metadata.tables)) == ("jobs", ["job", "step"])


async def test_a_job_outlives_the_daemon_that_took_it(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home)
    job = await first.daemon.jobs.submit("greet", "once", {"name": "Ada"})
    await first.daemon.stop()
    done = asyncio.Event()

    async def greet(running: RunningJob) -> Json:
        done.set()
        return running.payload

    second = await daemons.start(home=home)
    assert (await second.daemon.jobs.get(job)).state is JobState.PENDING
    second.daemon.jobs.register("greet", greet)
    async with asyncio.timeout(30):
        await done.wait()
