"""kill -9 after each crash of an agent: it is counted, and a loop of them ends."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from agenthost.testing.processes import DaemonProcess

FALLING = "tests.faults.falling"
ROOT = Path(__file__).parents[2]
RESTARTS = 3
MANIFEST = f'name = "helper"\n[autonomous]\nmax_restarts = {RESTARTS}\n'
PATIENCE = 60.0


def until(daemon: DaemonProcess, agent: str, *states: str) -> Any:
    """Wait until an agent stands so, and tell of it."""
    ends = time.monotonic() + PATIENCE
    while True:
        told = daemon.http.get(f"/api/agents/{agent}").json()
        if told["state"] in states:
            return told
        assert time.monotonic() < ends, told
        time.sleep(0.05)


@pytest.mark.faults
def test_kills_hide_no_crash(tmp_path: Path) -> None:
    home, environ = tmp_path / "home", {"PYTHONPATH": str(ROOT)}
    home.mkdir(mode=0o700)
    daemon = DaemonProcess(home, environ, FALLING)
    try:
        made = daemon.http.post("/api/agents", json={"manifest_toml": MANIFEST})
        agent = made.json()["agent_id"]
        for crash in range(1, RESTARTS + 2):
            until(daemon, agent, "Running")
            path = f"/api/agents/{agent}/message"
            answer = daemon.http.post(path, json={"message": "fall"})
            assert answer.status_code == 500, answer.text
            last = crash > RESTARTS
            until(daemon, agent, "Suspended" if last else "Crashed")
            daemon.kill()
            daemon.__exit__(None, None, None)
            daemon = DaemonProcess(home, environ, FALLING)
        told = until(daemon, agent, "Suspended")
        assert f"crashed {RESTARTS + 1} times" in told["reason"], told
    finally:
        daemon.terminate()
        daemon.__exit__(None, None, None)
