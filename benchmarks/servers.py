"""The processes under measurement: the upstream, the yardstick and the daemon."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 30
CONFIG = """\
[default_model]
provider = "bench"
model = "bench-model"

[providers.bench]
dialect = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"

[rate_limit]
units_per_minute = 1000000000
burst = 1000000000

# Memory is measured from outside.
[secret_zeroization]
debuggable = true
"""
MANIFEST = """\
name = "{name}"
description = "Answers for a benchmark."

[capabilities]
tools = []
"""


class StartError(Exception):
    """A process did not serve in time."""


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves HTTP on the loopback."""

    pid: int
    port: int

    def ask(self, path: str, body: object = None) -> Any:
        """Ask for JSON; POST when there is a body.

        Raises:
            StartError: It answers with an error, which is told.
        """
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            told = error.read().decode(errors="replace")
            raise StartError(f"{path} answers {error.code}: {told}") from error

    def spawn_agents(
        self, prefix: str, count: int, manifest: str = MANIFEST
    ) -> list[str]:
        """Make agents on the default model, without tools; return their ids."""
        manifests = (manifest.format(name=f"{prefix}-{n}") for n in range(count))
        asked = (self.ask("/api/agents", {"manifest_toml": m}) for m in manifests)
        return [answer["agent_id"] for answer in asked]


@contextmanager
def module(name: str, *arguments: str) -> Iterator[Server]:
    """Run a module of this folder that prints its port."""
    argv = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise StartError(f"benchmarks.{name} ended before it served")
            yield Server(process.pid, int(line))
        finally:
            process.kill()


def write_home(home: Path, upstream_port: int, more: str = "") -> None:
    """Write the configuration of a daemon whose model is the upstream."""
    home.mkdir(parents=True, exist_ok=True)
    text = CONFIG.format(port=upstream_port) + more
    (home / "config.toml").write_text(text, encoding="utf-8")


@contextmanager
def daemon(home: Path) -> Iterator[tuple[Server, float]]:
    """Start the daemon; give it and the seconds to its first answered request."""
    port = free_port()
    environment = {
        **os.environ,
        "AGENTHOST_HOME": str(home),
        "AGENTHOST_LISTEN_ADDR": f"127.0.0.1:{port}",
    }
    command = str(Path(sys.executable).parent / "agenthost")
    with (home / "daemon.log").open("ab") as log:
        start = time.perf_counter()
        process = subprocess.Popen([command, "start"], env=environment, stderr=log)
        try:
            _wait_for_answer(process, port, home)
            yield Server(process.pid, port), time.perf_counter() - start
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for_answer(process: subprocess.Popen[bytes], port: int, home: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    wire = f"GET /api/agents HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode()
    while time.monotonic() < deadline and process.poll() is None:
        if _answered(port, wire):
            return
        time.sleep(0.002)
    log = (home / "daemon.log").read_text(encoding="utf-8")[-2000:]
    raise StartError(f"the daemon did not serve; its log ends:\n{log}")


def _answered(port: int, wire: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(wire)
            return connection.recv(12) == b"HTTP/1.1 200"
    except OSError:
        return False


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
