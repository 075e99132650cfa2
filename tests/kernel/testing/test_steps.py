"""A contract notices a plugin that holds the event loop."""

from __future__ import annotations

import asyncio
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import (
    Completion,
    Delta,
    Effect,
    Finish,
    Message,
    ModelCall,
    NotFound,
    ProviderSpec,
    Role,
    Text,
    ToolContext,
    ToolResult,
    ToolSpec,
    Usage,
)
from agenthost.testing import ProviderContract, ToolContract
from agenthost.testing.installed import provider_of
from agenthost.testing.simulators import ProviderSimulator
from agenthost.testing.steps import LONGEST_STEP, check_steps
from pydantic import BaseModel

NOBODY = cast("ToolContext", SimpleNamespace())


def calculating() -> None:
    """Use the thread's CPU for longer than a step may."""
    ends = time.thread_time() + 2 * LONGEST_STEP
    while time.thread_time() < ends:
        pass


def sleeping() -> None:
    time.sleep(0)


def reading() -> None:
    Path(os.devnull).read_text(encoding="utf-8")


def listing() -> None:
    os.listdir("/")


def syncing() -> None:
    readable, writable = os.pipe()
    os.close(readable)
    try:
        os.fsync(writable)
    except OSError:
        os.close(writable)


def resolving() -> None:
    socket.getaddrinfo("127.0.0.1", 80)


def receiving() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        ours.recv(1)


def running() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)


LATER = 0.1
"""Seconds; on a busy machine what comes sooner is there before anybody waits for it."""


def waiting() -> None:
    answers: queue.Queue[int] = queue.Queue()
    threading.Timer(LATER, answers.put, [1]).start()
    answers.get()


def expecting() -> None:
    future: Future[int] = Future()
    threading.Timer(LATER, future.set_result, [1]).start()
    future.result()


BAD: list[tuple[Callable[[], None], str]] = [
    (calculating, "ms of CPU in one step"),
    (sleeping, "time.sleep"),
    (reading, "calls open"),
    (listing, "os.listdir"),
    (syncing, "os.fsync"),
    (resolving, "socket.getaddrinfo"),
    (receiving, "of a socket that blocks"),
    (running, "Popen"),
    (waiting, "a wait for another thread"),
    (expecting, "a wait for another thread"),
]
EACH_BAD = pytest.mark.parametrize(
    ("act", "named"), BAD, ids=[act.__name__ for act, _ in BAD]
)


class Nothing(BaseModel, extra="forbid"):
    """No arguments."""


def tool(act: Callable[[], None]) -> ToolSpec:
    """A tool that does this after its first suspension."""

    async def call(context: ToolContext, arguments: Nothing) -> ToolResult:
        await asyncio.sleep(0)
        act()
        return ToolResult("done")

    return ToolSpec("planted", "A tool of a test.", Nothing, Effect.READ, call)


class PlantedTool(ToolContract):
    tool = "planted"
    accepted = ({},)


@EACH_BAD
async def test_a_tool_that_holds_the_loop_fails_its_contract(
    act: Callable[[], None], named: str
) -> None:
    with pytest.raises(AssertionError, match=f"planted .*{named}"):
        await PlantedTool().test_it_leaves_the_loop_free(tool(act), NOBODY)


class BadDriver:
    """Answers after it has held the loop."""

    name = "planted"

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        await asyncio.sleep(0)
        self._act()
        said = Message(Role.ASSISTANT, (Text("done"),))
        yield Completion(said, Finish.STOP, Usage(1, 1))


class PlantedProvider(ProviderContract):
    provider = "groq"
    act: Callable[[], None]

    def spec(self) -> ProviderSpec:
        driver = BadDriver(type(self).__dict__["act"].__func__)
        return replace(provider_of("groq"), dialect=driver)


@EACH_BAD
async def test_a_provider_that_holds_the_loop_fails_its_contract(
    act: Callable[[], None], named: str
) -> None:
    planted = type("Planted", (PlantedProvider,), {"act": staticmethod(act)})()
    nobody = SimpleNamespace(play=lambda *_: None, base_url="http://127.0.0.1:1")
    upstream = cast("ProviderSimulator", nobody)
    with pytest.raises(AssertionError, match=f"groq .*{named}"):
        await planted.test_it_leaves_the_loop_free(upstream, stream=True)


async def in_a_thread() -> None:
    await asyncio.to_thread(sleeping)


async def in_several_steps() -> None:
    for _ in range(4):
        ends = time.thread_time() + LONGEST_STEP / 4
        while time.thread_time() < ends:
            pass
        await asyncio.sleep(0)


async def over_a_socket() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1")
    host, port = server.sockets[0].getsockname()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"x")
    await reader.read()
    writer.close()
    server.close()


async def in_a_process() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", ""),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await process.communicate()


async def with_an_import() -> None:
    sys.modules.pop("wave", None)
    import wave  # noqa: F401


async def with_an_error() -> None:
    await asyncio.sleep(0)
    raise NotFound("thing", "name")


async def with_what_it_catches() -> None:
    try:
        async with asyncio.timeout(0):
            await asyncio.sleep(10)
    except TimeoutError:
        await asyncio.sleep(0)


async def while_others_hold_the_loop() -> None:
    """Others' steps are not this call's."""
    asyncio.get_running_loop().call_soon(calculating)
    asyncio.get_running_loop().call_soon(sleeping)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


@pytest.mark.parametrize(
    "good",
    [
        in_a_thread,
        in_several_steps,
        over_a_socket,
        in_a_process,
        with_an_import,
        with_an_error,
        with_what_it_catches,
        while_others_hold_the_loop,
    ],
)
async def test_what_waits_rightly_passes(
    good: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    await check_steps("this", good)


async def test_the_first_call_may_be_slow() -> None:
    calls = []

    async def warming_up() -> None:
        calls.append(1)
        if len(calls) == 1:
            calculating()

    await check_steps("this", warming_up)
    assert len(calls) == 3


async def test_an_error_that_is_not_ours_is_not_hidden() -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await check_steps("this", broken)


async def test_a_profiler_that_was_there_is_there_again() -> None:
    def profile(*_: object) -> None: ...

    async def nothing() -> None: ...

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        await check_steps("this", nothing)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(before)
