"""kill -9 while agents go on in other sessions: what was said is found again."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from tests.acceptance.test_offline import create

PATIENCE = 30.0
QUICK = 4
THOROUGH = 40


class Changer(threading.Thread):
    """Tells an agent something and lets it begin anew, until the daemon dies."""

    def __init__(self, http: httpx.Client, agent_id: str, life: int) -> None:
        super().__init__(daemon=True)
        self._http = http
        self._path = f"/api/agents/{agent_id}"
        self._life = life
        self.acknowledged: list[str] = []

    def run(self) -> None:
        number = 0
        while True:
            try:
                self._tell(f"remember k is {self._life}-{number}")
                made = self._post(f"{self._path}/sessions", {})
                self._post(f"/api/sessions/{made['id']}/activate", {})
            except httpx.HTTPError:
                return
            number += 1

    def told_so_much(self, count: int) -> None:
        """Wait until so many messages were acknowledged."""
        deadline = time.monotonic() + PATIENCE
        while len(self.acknowledged) < count and time.monotonic() < deadline:
            self.join(0.002)

    def _tell(self, text: str) -> None:
        self._post(f"{self._path}/message", {"message": text})
        self.acknowledged.append(text)

    def _post(self, path: str, body: dict[str, str]) -> dict[str, str]:
        answer = self._http.post(path, json=body)
        answer.raise_for_status()
        return dict(answer.json())


def check(http: httpx.Client, agent_id: str, acknowledged: list[str]) -> None:
    rows = http.get("/api/sessions", params={"agent": agent_id}).json()["sessions"]
    own = http.get(f"/api/agents/{agent_id}/session").json()["session_id"]
    current = [row["id"] for row in rows if row["current"]]
    assert current == [own], "an agent has no session, or two"
    assert not next(row for row in rows if row["id"] == own)["archived"]
    said: Counter[str] = Counter()
    for row in rows:
        shown = http.get(f"/api/sessions/{row['id']}").json()["messages"]
        said.update(each["content"] for each in shown if each["role"] == "User")
    assert set(said.values()) <= {1}, "a message stands in two sessions"
    assert set(acknowledged) <= set(said), "an acknowledged message was lost"
    for text in acknowledged[-3:]:
        found = http.get("/api/sessions", params={"q": text}).json()["sessions"]
        assert found, f"a search does not find {text!r}"


def kill_while_sessions_change(home: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    acknowledged: list[str] = []
    agent_id = ""
    for life in range(rounds):
        with DaemonProcess(home) as daemon:
            agent_id = agent_id or create(daemon.http, "ada")
            check(daemon.http, agent_id, acknowledged)
            changer = Changer(daemon.http, agent_id, life)
            changer.start()
            changer.told_so_much(chance.randint(2, 6))
            time.sleep(chance.uniform(0, 0.05))
            daemon.kill()
            changer.join()
            acknowledged += changer.acknowledged
    with DaemonProcess(home) as daemon:
        check(daemon.http, agent_id, acknowledged)
    assert len(acknowledged) > rounds


@pytest.mark.conformance
def test_a_kill_while_sessions_change_loses_nothing(tmp_path: Path) -> None:
    kill_while_sessions_change(tmp_path / "home", QUICK, seed=1)


@pytest.mark.faults
def test_many_kills_while_sessions_change_lose_nothing(tmp_path: Path) -> None:
    kill_while_sessions_change(tmp_path / "home", THOROUGH, seed=2)
