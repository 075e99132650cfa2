"""Files that were taken are there after a kill, and nothing of the others is."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import httpx
import pytest
from agenthost.testing import DaemonProcess

pytestmark = pytest.mark.faults
KILLS = 5


def test_a_kill_loses_no_file_that_was_taken(tmp_path: Path) -> None:
    chance = random.Random(7)
    taken: dict[str, bytes] = {}
    agent = ""
    for _ in range(KILLS):
        with DaemonProcess(tmp_path / "home") as daemon:
            if not agent:
                body = {"manifest_toml": 'name = "ada"\n'}
                made = daemon.http.post("/api/agents", json=body)
                agent = str(made.json()["agent_id"])
            path = f"/api/agents/{agent}/files"

            def hand(path: str = path, daemon: DaemonProcess = daemon) -> None:
                while daemon.process.poll() is None:
                    data = chance.randbytes(500_000).hex().encode()
                    try:
                        answer = daemon.http.post(path, files={"file": ("a", data)})
                        taken[answer.json()["file_id"]] = data
                    except (httpx.HTTPError, ValueError, KeyError):
                        return

            threads = [threading.Thread(target=hand) for _ in range(3)]
            for thread in threads:
                thread.start()
            time.sleep(chance.uniform(0.2, 1.0))
            daemon.kill()
            for thread in threads:
                thread.join()
    with DaemonProcess(tmp_path / "home") as daemon:
        listed = daemon.http.get(path).json()["files"]
        assert taken
        assert taken.keys() <= {each["file_id"] for each in listed}
        for each in listed:
            found = daemon.http.get(f"{path}/{each['file_id']}")
            assert found.status_code == 200
            assert found.content == taken.get(each["file_id"], found.content)
            assert len(found.content) == each["size"] == 1_000_000
