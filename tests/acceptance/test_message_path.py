"""What the way of one message takes: areas, functions, tasks and commits.

The limits are what there is today with a little room. Who needs more of them changes a
number here and says why.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import agenthost
import pytest
from agenthost.testing.daemons import Daemons, RunningAgent

from benchmarks.upstream import Upstream

ROOT = Path(agenthost.__file__).parents[2]
# The request, the turn, and the write of aiohttp.
TASKS = 3
COMMITS = 1
AREAS = 17
# Two of them, and two functions, are the question whether the client may ask so much;
# three events of a message are entries of the audit trail: asked about, and recorded.
CHANGES_OF_AREA = 84
FUNCTIONS = 372
REPEATS = 3
# Their types are what all areas speak in: to use one is no change of area.
COMMON = frozenset({"kernel", "chat"})

WAL_HEADER = 32
FRAME_HEADER = 24


@cache
def area_of(filename: str) -> str | None:
    """Name the area a file belongs to; None when it is not of this house."""
    path = Path(filename)
    if not path.is_relative_to(ROOT) or "testing" in path.parts:
        return None
    house, area, *_ = path.relative_to(ROOT).parts
    return {"kernel": "kernel", "libraries": area, "plugins": area}.get(house)


@dataclass
class Way:
    """What was passed through, on the thread of the event loop."""

    functions: dict[CodeType, str] = field(default_factory=dict)
    frames: set[FrameType] = field(default_factory=set)
    changes: int = 0
    area: str = ""
    tasks: list[str] = field(default_factory=list)

    def enter(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call of one of our functions."""
        if event != "call" or (area := area_of(frame.f_code.co_filename)) is None:
            return
        # A coroutine that goes on is told as called once more; it is no new way.
        if frame in self.frames:
            return
        self.frames.add(frame)
        self.functions[frame.f_code] = area
        if area not in COMMON and area != self.area:
            self.changes += 1
            self.area = area

    def begin(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Any,
        **how: Any,
    ) -> asyncio.Task[Any]:
        """Note a task that begins."""
        self.tasks.append(coro.__qualname__)
        return asyncio.Task(coro, loop=loop, **how)

    def __str__(self) -> str:
        by_area = Counter(self.functions.values()).most_common()
        return (
            f"{len(self.functions)} functions in {len(by_area)} areas "
            f"({', '.join(f'{area} {count}' for area, count in by_area)}), "
            f"{self.changes} changes of area, tasks: {self.tasks}"
        )


@contextmanager
def watched() -> Iterator[Way]:
    """Note what this thread passes through, and the tasks that begin."""
    way = Way()
    loop = asyncio.get_running_loop()
    factory: Any = way.begin
    loop.set_task_factory(factory)
    sys.setprofile(way.enter)
    try:
        yield way
    finally:
        sys.setprofile(None)
        loop.set_task_factory(None)


def commits_of(log: Path) -> int:
    """Count the commits in a write-ahead log, by SQLite's description of its format.

    A frame that ends a transaction tells the size of the database behind it. Frames of
    an earlier round have another salt.
    """
    content = log.read_bytes()
    size = struct.unpack_from(">I", content, 8)[0]
    salt = content[16:24]
    frames = range(WAL_HEADER, len(content), FRAME_HEADER + size)
    return sum(
        content[at + 8 : at + 16] == salt and content[at + 4 : at + 8] != bytes(4)
        for at in frames
    )


@pytest.fixture
async def upstream() -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(3), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.fixture
async def agent(
    tmp_path: Path, upstream: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningAgent]:
    # What a daemon does by itself after its start is no part of a message.
    monkeypatch.setattr("agenthost.daemon.WARM_UP_AFTER", 3600)
    # Nor is the commit of a question whose answer takes long, on a busy machine.
    monkeypatch.setattr("agenthost_turns.run.TOGETHER", 3600)
    daemons = Daemons(tmp_path)
    config = (
        '[default_model]\nprovider = "bench"\nmodel = "bench-model"\n'
        f'[providers.bench]\ndialect = "openai-chat"\nbase_url = "{upstream}"\n'
    )
    running = await daemons.start(home=tmp_path / "home", config=config)
    agent = await running.agent(
        tools=(), extra='[model]\nprovider = "bench"\nmodel = "bench-model"\n'
    )
    for _ in range(3):
        assert await agent.ask("hi") == "word word word "
    yield agent
    await daemons.close()


async def test_the_way_of_a_message_stays_short(
    agent: RunningAgent, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    log = next((tmp_path / "home").rglob("*-wal"))
    ways = []
    for _ in range(REPEATS):
        before = commits_of(log)
        with watched() as way:
            await agent.ask("hi")
        ways.append((way, commits_of(log) - before))
    # A timer of the daemon's that comes due in the midst of a message is none of it.
    way, commits = min(ways, key=lambda one: (len(one[0].functions), one[0].changes))
    figures(f"{way}, {commits} commits")
    assert commits == COMMITS
    assert len(way.tasks) <= TASKS, way.tasks
    assert len(set(way.functions.values())) <= AREAS, str(way)
    assert way.changes <= CHANGES_OF_AREA, str(way)
    assert len(way.functions) <= FUNCTIONS, str(way)
