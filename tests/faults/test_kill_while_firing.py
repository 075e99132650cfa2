"""A kill between an event and what it sets off: each firing is done, and once."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost.testing import DaemonProcess

pytestmark = pytest.mark.faults
KILLS = 6
PATIENCE = 60.0


def test_kills_neither_lose_nor_double_a_firing(tmp_path: Path) -> None:
    endure(tmp_path / "home", KILLS)


def endure(home: Path, kills: int) -> None:
    home.mkdir()
    text = "[triggers]\ncooldown_secs = 0\n[rate_limit]\nenabled = false\n"
    (home / "config.toml").write_text(text, encoding="utf-8")
    chance = random.Random(7)
    sent, taken, trigger = Counter[str](), set[str](), ""
    for _ in range(kills):
        with DaemonProcess(home) as daemon:
            trigger = trigger or prepared(daemon)

            def publish(name: str, daemon: DaemonProcess = daemon) -> None:
                while daemon.process.poll() is None:
                    sent[name] += 1
                    body = {"type": "order", "data": {"n": f"{name}{sent[name]}"}}
                    try:
                        answer = daemon.http.post("/api/events", json=body)
                        taken.add(answer.json()["event_id"])
                    except (httpx.HTTPError, ValueError, KeyError):
                        return

            threads = [threading.Thread(target=publish, args=(each,)) for each in "ab"]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.2, 0.6))
            daemon.kill()
            for thread in threads:
                thread.join()
    with DaemonProcess(home) as daemon:
        check(daemon, trigger, taken)


def prepared(daemon: DaemonProcess) -> str:
    """Make an agent and its trigger."""
    made = daemon.http.post("/api/agents", json={"manifest_toml": 'name = "ada"\n'})
    body = {
        "agent_id": made.json()["agent_id"],
        "pattern": {"content_match": {"substring": 'event "order"'}},
        "session": "new",
    }
    answer = daemon.http.post("/api/triggers", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["trigger_id"])


def check(daemon: DaemonProcess, trigger: str, taken: set[str]) -> None:
    """Each event that was acknowledged has one firing, which is done once."""
    deadline = time.monotonic() + PATIENCE
    while any(row["ended_at"] is None for row in firings(daemon, trigger)):
        assert time.monotonic() < deadline, "what was caught is not done"
        time.sleep(0.05)
    found = firings(daemon, trigger)
    assert taken
    assert {row["state"] for row in found} == {"done"}
    assert taken <= {row["key"] for row in found}
    shown = daemon.http.get(f"/api/triggers/{trigger}").json()
    for name in ("key", "turn_id"):
        assert len({row[name] for row in found}) == len(found) == shown["fire_count"]


def firings(daemon: DaemonProcess, trigger: str) -> list[dict[str, Any]]:
    """All firings of the trigger."""
    found: list[dict[str, Any]] = []
    while True:
        query = {"source_id": trigger, "limit": "500"}
        if found:
            query["after"] = found[-1]["id"]
        page = daemon.http.get("/api/occasions", params=query).json()["occasions"]
        found += page
        if len(page) < 500:
            return found
