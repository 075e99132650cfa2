"""A command as a process group of its own, that ends whole and says only so much."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from agenthost import Unavailable
from agenthost_values.value_class import value_class

LAUNCHER = Path(__file__).with_name("launcher.py")
LAST_WORDS = 2.0
"""Seconds for what was printed to arrive, once every process is killed."""


@value_class
class Command:
    """What is to be run, where, and within which bounds."""

    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    limits: Mapping[str, int]
    seconds: float
    output_bytes: int


@value_class
class Ended:
    """How a command ended: ``code`` is None when it was killed for its time."""

    code: int | None
    stdout: str
    stderr: str


class _Outputs(asyncio.SubprocessProtocol):
    """Keeps the beginning of each output, and lets the rest go by."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = {1: bytearray(), 2: bytearray()}
        self._seen = {1: 0, 2: 0}
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._kept[fd] += data[: self._most - len(self._kept[fd])]
        self._seen[fd] += len(data)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if not self.closed.done():
            self.closed.set_result(None)

    def text(self, fd: int) -> str:
        """What it printed, and whether there was more."""
        text = self._kept[fd].decode("utf-8", "replace")
        left = self._seen[fd] - len(self._kept[fd])
        return f"{text}\n[{left} more bytes]" if left else text


async def run(command: Command) -> Ended:
    """Run a command to its end, or to the end of its time; nothing of it is left.

    Raises:
        Unavailable: No process can be started now.
    """
    asked = {"limits": dict(command.limits), "arguments": command.arguments}
    outputs = _Outputs(command.output_bytes)
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: outputs,
            *(sys.executable, "-I", "-S", str(LAUNCHER), json.dumps(asked)),
            stdin=asyncio.subprocess.DEVNULL,
            cwd=command.folder,
            env=dict(command.environment),
            start_new_session=True,
        )
    except OSError as error:
        raise Unavailable("no process can be started now; try again later") from error
    try:
        await asyncio.wait({outputs.exited}, timeout=command.seconds)
        code = transport.get_returncode()
    finally:
        # Also what it left in the background, which holds the pipes open.
        _kill_group(transport.get_pid())
        try:
            await asyncio.wait({outputs.closed}, timeout=LAST_WORDS)
        finally:
            transport.close()
    return Ended(code, outputs.text(1), outputs.text(2))


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # The last of it has ended; macOS says the latter of those not yet waited for.
        return
