"""A node as a process of its own, which walks: jobs of ten steps.

Run as ``python -m tests.plugins.cluster.worker <url> <ledger>``. Each step adds a line
to the ledger, which stands for an effect on the outside, and a row beside its output.
It ends when its input does.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from agenthost import Json, RunningJob, SystemClock
from agenthost_cluster.store import PostgresStore
from agenthost_jobs import register_schema
from agenthost_jobs.queue import EmbeddedJobs
from sqlalchemy import Connection

from .rows import SCHEMA, put

STEPS = 10
PACE = 0.1


async def main(url: str, ledger: Path) -> None:
    store = await PostgresStore.open(url, [register_schema(), SCHEMA])
    jobs = EmbeddedJobs(store, SystemClock())

    def row(connection: Connection, output: Json) -> None:
        put(connection, name=str(output))

    async def walk(run: RunningJob) -> Json:
        for number in range(STEPS):

            async def effect(number: int = number) -> Json:
                with ledger.open("a") as file:
                    file.write(f"{os.getpid()} {run.job.key} {number}\n")
                await asyncio.sleep(PACE)
                return f"{run.job.key} {number}"

            await run.step(f"step {number}", effect, row)
        return run.job.epoch

    jobs.register("walk", walk)
    await jobs.start()
    await asyncio.to_thread(sys.stdin.read)
    await jobs.stop()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
