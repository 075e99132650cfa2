"""A distribution of somebody else's whose one plugin does what the test says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import httpx
from agenthost.testing.processes import DaemonProcess

PLUGIN = "plugin:wild"
HEAD = """
import asyncio, ctypes, os, signal, sys, threading, time
from agenthost import RouteGroup, ServiceSpec, hookimpl

routes = RouteGroup("wild")


async def start(daemon):
    pass


async def stop(daemon):
    pass


async def fault(daemon):
    pass


def at_boot():
    pass

"""
TAIL = """

@routes.post("/wild", scope="system:admin")
async def wild(call):
    await fault(call.host)
    return {"status": "done"}


@hookimpl
def register_routes():
    at_boot()
    yield routes


@hookimpl
def register_service():
    yield ServiceSpec("wild", start, stop)
"""


class Wild:
    """A home with the plugin installed beside it.

    Args:
        folder: Where both are made.
        code: Overrides ``fault`` (run by ``POST /wild``), ``start``, ``stop`` or
            ``at_boot`` of the plugin.
        environ: More environment variables of the daemon.
    """

    def __init__(self, folder: Path, code: str = "", **environ: str) -> None:
        self.home = folder / "home"
        self._site = folder / "site"
        self._environ = environ
        info = self._site / "wild-1.0.dist-info"
        info.mkdir(parents=True)
        facts = "Metadata-Version: 2.1\nName: wild\nVersion: 1.0\n"
        (info / "METADATA").write_text(facts)
        (info / "entry_points.txt").write_text("[agenthost.plugins]\nwild = wild\n")
        self.does(code)

    def does(self, code: str) -> None:
        """Let the plugin do something else from its next import on."""
        text = f"{HEAD}\n{dedent(code)}\n{TAIL}"
        (self._site / "wild.py").write_text(text, encoding="utf-8")

    def daemon(self) -> DaemonProcess:
        """Start a daemon on the home and wait until it serves."""
        return DaemonProcess(self.home, self._own)

    def starting(self) -> subprocess.Popen[bytes]:
        """Start a daemon and do not wait."""
        return subprocess.Popen(
            [sys.executable, "-m", "agenthost"],
            env={
                "PATH": os.environ.get("PATH", ""),
                "AGENTHOST_HOME": str(self.home),
                "AGENTHOST_LISTEN_ADDR": "127.0.0.1:0",
                **self._own,
            },
            stderr=subprocess.PIPE,
        )

    def failing_start(self, patience: float = 30.0) -> int:
        """Start a daemon that does not come to serve; return its exit code."""
        with self.starting() as process:
            process.communicate(timeout=patience)
        return process.returncode

    @property
    def incidents(self) -> str:
        """What is noted for the next start."""
        return (self.home / "incidents.jsonl").read_text()

    @property
    def _own(self) -> dict[str, str]:
        """What makes the daemon load the plugin."""
        return {
            "PYTHONPATH": str(self._site),
            "PYTHONDONTWRITEBYTECODE": "1",
            "AGENTHOST_PLUGINS__ENABLE": PLUGIN,
            **self._environ,
        }


def strike(daemon: DaemonProcess, patience: float = 2.0) -> None:
    """Let the plugin do its worst; there may be no answer."""
    try:
        daemon.http.post("/wild", timeout=patience)
    except httpx.TransportError:
        return


def status_of_wild(daemon: DaemonProcess) -> tuple[str, str]:
    """Tell the plugin's status and the reason."""
    detail = daemon.http.get("/api/health/detail").json()
    (row,) = (row for row in detail["plugins"] if row["key"] == PLUGIN)
    return row["status"], row["reason"] or ""


def serves(daemon: DaemonProcess) -> bool:
    """Tell whether health is answered."""
    return daemon.http.get("/api/health").status_code == 200


def ends_by_itself(daemon: DaemonProcess, patience: float) -> int:
    """Wait for an end that nobody asked for; return the exit code."""
    return daemon.process.wait(patience)


def said(daemon: DaemonProcess, text: str, patience: float = 10.0) -> bool:
    """Wait until the log holds a text."""
    deadline = time.monotonic() + patience
    while text not in daemon.log:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def signalled(daemon: DaemonProcess, number: signal.Signals) -> None:
    """Send a signal."""
    daemon.process.send_signal(number)
