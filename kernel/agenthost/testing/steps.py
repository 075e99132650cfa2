"""No step of a plugin's coroutine may hold the event loop: every contract asks it.

A step is what runs between two suspensions. Its cost is the CPU time of the loop's own
thread, so that a busy machine proves nothing, and it is taken of the coroutine alone,
which is driven by hand: servers, clients and daemons on the same loop do not count.
What waits without using the CPU is known by its name and not by the time it took,
which a busy machine would stretch: a profiler sees each call of a step.
"""

from __future__ import annotations

import gc
import io
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Protocol

from ..errors import AgentHostError

LONGEST_STEP = 0.05
"""Seconds of CPU."""

TRIES = 3
"""The first call may import; one that is slow every time is slow."""

_BLOCKING: dict[object, str] = {
    time.sleep: "time.sleep",
    io.open: "open",
    os.open: "os.open",
    os.listdir: "os.listdir",
    os.scandir: "os.scandir",
    os.fsync: "os.fsync",
    os.fdatasync: "os.fdatasync",
    os.system: "os.system",
    select.select: "select.select",
    socket.getaddrinfo.__code__: "socket.getaddrinfo",
    subprocess.Popen.wait.__code__: "Popen.wait",
    subprocess.Popen.communicate.__code__: "Popen.communicate",
    threading.Thread.join.__code__: "Thread.join",
    threading.Condition.wait.__code__: "a wait for another thread",
}
_OF_SOCKETS = frozenset(
    {"accept", "connect", "recv", "recv_into", "recvfrom", "send", "sendall", "sendto"}
)
_MAY = ("asyncio", "importlib", "_frozen_importlib", "subprocess", "zipimport")
"""Modules whose files are none: they wrap pipes, or are imports, which happen once."""

Call = Callable[[], Coroutine[Any, Any, object]]


class Watch(Protocol):
    """What is found out about a call, step by step."""

    found: str

    def step(self) -> Any:
        """Return what is entered around each step."""


class CpuWatch:
    """Finds the step that takes the loop's thread for too long."""

    def __init__(self) -> None:
        self.found = ""

    @contextmanager
    def step(self) -> Iterator[None]:
        """Measure a step."""
        # What others left for the collector is not this step's doing.
        was_on = gc.isenabled()
        gc.disable()
        began = time.thread_time()
        try:
            yield
        finally:
            taken = time.thread_time() - began
            if was_on:
                gc.enable()
            if taken > LONGEST_STEP:
                self.found = (
                    f"holds the event loop for {taken * 1000:.0f} ms of CPU in one"
                    f" step; at most {LONGEST_STEP * 1000:.0f}"
                )


class BlockingWatch:
    """Finds the call that waits where it should be awaited."""

    def __init__(self) -> None:
        self.found = ""

    @contextmanager
    def step(self) -> Iterator[None]:
        """Look at each call of a step."""
        before = sys.getprofile()
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        name = ""
        if event == "call":
            name = _waits(frame)
        elif event == "c_call":
            name = _blocks(frame, argument)
        if name and not self.found:
            self.found = f"calls {name} on the event loop; await it in a thread"


class _Driven:
    """A coroutine whose steps are watched; await it in its stead."""

    def __init__(self, coroutine: Coroutine[Any, Any, object], watch: Watch) -> None:
        self._coroutine = coroutine
        self._watch = watch

    def __await__(self) -> Generator[Any, Any, object]:
        go_on: Callable[[Any], Any] = self._coroutine.send
        given: Any = None
        while True:
            try:
                with self._watch.step():
                    awaited = go_on(given)
            except StopIteration as done:
                return done.value
            try:
                go_on, given = self._coroutine.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's own
                go_on, given = self._coroutine.throw, error


async def check_steps(name: str, call: Call) -> None:
    """Make the call and see that no step of it holds the event loop.

    Args:
        name: What is tested, for the message.
        call: Makes a coroutine; it is called several times, and may end in an
            AgentHostError.

    Raises:
        AssertionError: A step took over 50 ms of the thread's CPU, or called what
            waits, each time.
    """
    for kind in (CpuWatch, BlockingWatch):
        found = ""
        for _ in range(TRIES):
            watch: Watch = kind()
            with suppress(AgentHostError):
                await _Driven(call(), watch)
            found = watch.found
            if not found:
                break
        assert not found, f"{name} {found}"


def _waits(frame: FrameType) -> str:
    name = _BLOCKING.get(frame.f_code, "")
    if name and frame.f_code is threading.Condition.wait.__code__:
        timeout = frame.f_locals["timeout"]
        starts = frame.f_back and frame.f_back.f_back
        at_once = timeout is not None and timeout <= 0
        # A thread that is started is waited for until it runs, which takes no time.
        if at_once or (starts and starts.f_code is threading.Thread.start.__code__):
            return ""
    return name


def _blocks(frame: FrameType, function: object) -> str:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, socket.socket):
        method = getattr(function, "__name__", "")
        waits = method in _OF_SOCKETS and owner.gettimeout() != 0
        return f"{method} of a socket that blocks" if waits else ""
    module = frame.f_globals.get("__name__", "").partition(".")[0]
    return "" if module in _MAY else _BLOCKING.get(function, "")
