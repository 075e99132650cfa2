"""kill -9 during messages: what was acknowledged is there, once, in order."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from tests.acceptance.test_offline import create

WORKERS = 4
QUICK = 5
THOROUGH = 50


class Talker(threading.Thread):
    """Sends numbered messages to one agent until the daemon dies."""

    def __init__(self, http: httpx.Client, agent_id: str, life: int) -> None:
        super().__init__(daemon=True)
        self._http = http
        self.agent_id = agent_id
        self._life = life
        self.acknowledged: list[str] = []

    def run(self) -> None:
        number = 0
        while True:
            text = f"remember k is {self._life}-{number}"
            try:
                answer = self._http.post(
                    f"/api/agents/{self.agent_id}/message", json={"message": text}
                )
            except httpx.TransportError:
                return
            if answer.status_code != 200:
                return
            self.acknowledged.append(text)
            number += 1


def check(daemon: DaemonProcess, agent_id: str, acknowledged: list[str]) -> None:
    session = daemon.http.get(f"/api/agents/{agent_id}/session").json()
    said = [m["content"] for m in session["messages"] if m["role"] == "User"]
    asked = [text for text in said if text != "recall k"]
    assert len(asked) == len(set(asked)), "a message was stored twice"
    kept = [text for text in asked if text in set(acknowledged)]
    assert kept == acknowledged, "an acknowledged message was lost or moved"
    answer = daemon.http.post(
        f"/api/agents/{agent_id}/message", json={"message": "recall k"}
    )
    assert answer.status_code == 200, answer.text


def kill_at_random_points(home: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    # Every message counts here, so compaction must not hide the older ones.
    environ = {"AGENTHOST_COMPACTION__THRESHOLD_MESSAGES": "1000000"}
    acknowledged: dict[str, list[str]] = {}
    for life in range(rounds):
        with DaemonProcess(home, environ) as daemon:
            if not acknowledged:
                names = (f"agent{n}" for n in range(WORKERS))
                acknowledged = {create(daemon.http, name): [] for name in names}
            for agent_id, texts in acknowledged.items():
                check(daemon, agent_id, texts)
            talkers = [Talker(daemon.http, key, life) for key in acknowledged]
            for talker in talkers:
                talker.start()
            time.sleep(chance.uniform(0.02, 0.4))
            daemon.kill()
            for talker in talkers:
                talker.join()
                acknowledged[talker.agent_id] += talker.acknowledged
    with DaemonProcess(home, environ) as daemon:
        for agent_id, texts in acknowledged.items():
            check(daemon, agent_id, texts)
    assert sum(map(len, acknowledged.values())) > rounds


def test_a_kill_during_messages_loses_nothing_acknowledged(tmp_path: Path) -> None:
    kill_at_random_points(tmp_path / "home", QUICK, seed=1)


@pytest.mark.faults
def test_many_kills_during_messages_lose_nothing_acknowledged(tmp_path: Path) -> None:
    kill_at_random_points(tmp_path / "home", THOROUGH, seed=2)
