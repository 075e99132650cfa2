"""A process that runs one job, which kills it.

Run as ``python -m tests.plugins.jobs.suicide <database> <ledger>``. It ends by itself
once the job is not run any more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from agenthost import Json, RunningJob, SystemClock
from agenthost_jobs.queue import EmbeddedJobs
from agenthost_jobs.schema import SCHEMA
from agenthost_jobs.writes import ENDED
from agenthost_storage.sqlite import SqliteStore


async def main(database: Path, ledger: Path) -> None:
    store = await SqliteStore.open(database, [SCHEMA])
    jobs = EmbeddedJobs(store, SystemClock())

    async def die(job: RunningJob) -> Json:
        with ledger.open("a") as file:
            file.write(f"{job.job.attempts}\n")
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    jobs.register("die", die)
    job = await jobs.submit("die", "the only one", None)
    await jobs.start()
    while (await jobs.get(job)).state not in ENDED:
        pass
    await jobs.stop()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
