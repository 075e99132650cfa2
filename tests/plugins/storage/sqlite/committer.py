"""A process that writes until it is killed and says which writes were acknowledged.

Run as ``python -m tests.plugins.storage.sqlite.committer <database>``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from agenthost_storage.sqlite import SqliteStore

from .rows import SCHEMA, adding


async def main() -> None:
    store = await SqliteStore.open(Path(sys.argv[1]), [SCHEMA])
    start = sys.argv[2]

    async def caller(number: int) -> None:
        for count in range(1_000_000):
            name = f"{start}-{number}-{count}"
            await store.write(adding(name))
            os.write(1, f"{name}\n".encode())

    await asyncio.gather(*(caller(number) for number in range(16)))


if __name__ == "__main__":
    asyncio.run(main())
