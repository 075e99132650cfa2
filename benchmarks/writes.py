"""Durable writes of 64 callers: our store beside SQLAlchemy's asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import sqlalchemy as sa
from agenthost import SchemaSpec
from sqlalchemy.ext.asyncio import create_async_engine

CALLERS = 64
METADATA = sa.MetaData()
LINES = sa.Table(
    "bench_lines",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)


# Built once, as every statement of ours is: otherwise building it is what is measured.
INSERT = sa.insert(LINES)


def insert(connection: sa.Connection) -> None:
    """Add one row, on both sides."""
    connection.execute(INSERT, {"text": "a line of a conversation"})


async def commits_per_second(
    write: Callable[[], Awaitable[object]], each: int
) -> float:
    """Let all callers write one after another; every write is one durable commit."""

    async def caller() -> None:
        for _ in range(each):
            await write()

    await write()
    start = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return CALLERS * each / (time.perf_counter() - start)


async def of_store(folder: Path, each: int) -> float:
    """Commits per second of our store."""
    from agenthost_storage.sqlite import SqliteStore

    store = await SqliteStore.open(folder / "store.db", [SchemaSpec("bench", METADATA)])
    try:
        return await commits_per_second(lambda: store.write(insert), each)
    finally:
        await store.close()


async def of_sqlalchemy(folder: Path, each: int) -> float:
    """Commits per second of SQLAlchemy's asyncio, WAL and FULL, one commit each."""
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{folder / 'alchemy.db'}",
        connect_args={"timeout": 60},
    )

    @sa.event.listens_for(engine.sync_engine, "connect")
    def configure(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    async def write() -> None:
        async with engine.begin() as connection:
            await connection.run_sync(insert)

    try:
        async with engine.begin() as connection:
            await connection.run_sync(METADATA.create_all)
        return await commits_per_second(write, each)
    finally:
        await engine.dispose()
