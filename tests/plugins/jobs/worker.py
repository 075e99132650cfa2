"""A process that runs one job of ten steps and dies after a given one.

Run as ``python -m tests.plugins.jobs.worker <database> <ledger> <deadly step>``. Each
step adds a line to the ledger, which stands for an effect on the outside, and a row
beside its output.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from agenthost import JobState, Json, RunningJob, SystemClock
from agenthost_jobs.queue import EmbeddedJobs
from agenthost_jobs.schema import SCHEMA
from agenthost_storage.sqlite import SqliteStore
from sqlalchemy import Connection

from tests.plugins.storage.sqlite.rows import SCHEMA as ROWS
from tests.plugins.storage.sqlite.rows import put

STEPS = 10


async def main(database: Path, ledger: Path, deadly: int) -> None:
    store = await SqliteStore.open(database, [SCHEMA, ROWS])
    jobs = EmbeddedJobs(store, SystemClock())
    finished = asyncio.Event()

    def count(connection: Connection, output: Json) -> None:
        put(connection, output)

    async def handler(job: RunningJob) -> Json:
        for number in range(STEPS):

            async def effect(number: int = number) -> Json:
                with ledger.open("a") as file:
                    file.write(f"{number}\n")
                return f"step {number}"

            await job.step(f"step {number}", effect, count)
            if number == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        finished.set()
        return "finished"

    jobs.register("walk", handler)
    await jobs.submit("walk", "the only one", None)
    await jobs.start()
    await finished.wait()
    while not await jobs.list(state=JobState.DONE):  # noqa: ASYNC110 - what it waits for has no event
        await asyncio.sleep(0.01)
    await jobs.stop()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
