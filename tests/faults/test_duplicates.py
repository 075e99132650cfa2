"""The same message again and again: one turn, one effect, one answer for all."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from .oracle import answer_to
from .test_kill_under_load import MANIFEST, TOOL, CallingOracle, write_plugin
from .worlds import CHOICE, client

MESSAGES = 20
AT_ONCE = 5
ROUNDS = 5
KILLED_IN = 2
"""The round in which the daemon dies under them."""


class Duplicates:
    """Messages with a key each, delivered over and over."""

    def __init__(self, messages: int) -> None:
        self.texts = [f"use {number}" for number in range(messages)]
        self.answers: dict[str, set[str]] = {text: set() for text in self.texts}
        self.delivered = 0

    async def deliver(self, http: httpx.AsyncClient, agent: str) -> None:
        """Deliver each several times at once; what has no answer is tried again."""
        tries = [self._deliver(http, agent, t) for t in self.texts * AT_ONCE]
        for ended in await asyncio.gather(*tries, return_exceptions=True):
            assert ended is None or isinstance(ended, httpx.TransportError), ended

    async def _deliver(self, http: httpx.AsyncClient, agent: str, text: str) -> None:
        path, key = f"/api/agents/{agent}/message", {"Idempotency-Key": text}
        self.delivered += 1
        answer = await http.post(path, json={"message": text}, headers=key)
        assert answer.status_code == 200, answer.text
        self.answers[text].add(answer.json()["response"])


async def deliver_all(tmp_path: Path, messages: int, rounds: int) -> int:
    """Deliver in rounds to one home; give how many deliveries there were."""
    home, effects = tmp_path / "home", tmp_path / "effects"
    home.mkdir()
    effects.touch()
    found = {**CHOICE, **write_plugin(tmp_path / "installed", effects)}
    duplicates = Duplicates(messages)
    async with CallingOracle() as oracle:
        (home / "config.toml").write_text(oracle.config)
        agent = ""
        for number in range(rounds):
            process = await asyncio.to_thread(DaemonProcess, home, found)
            with process:
                async with client(str(process.http.base_url)) as http:
                    if not agent:
                        manifest = MANIFEST.format(name="ada", tool=TOOL)
                        body = {"manifest_toml": manifest}
                        made = await http.post("/api/agents", json=body)
                        agent = made.json()["agent_id"]
                    work = asyncio.create_task(duplicates.deliver(http, agent))
                    if number == KILLED_IN:
                        await asyncio.sleep(0.05)
                        process.kill()
                    await work
    assert duplicates.answers == {text: {answer_to(text)} for text in duplicates.texts}
    done = Counter(effects.read_text().split("\n")[:-1])
    assert set(done.values()) == {1}
    # Where the process died in an effect, nobody knows whether it was: never again.
    assert len(done) >= messages - (rounds > KILLED_IN)
    return duplicates.delivered


async def test_a_message_that_comes_many_times_has_one_effect(tmp_path: Path) -> None:
    assert await deliver_all(tmp_path, 2, 1) == 10


@pytest.mark.faults
async def test_of_500_deliveries_each_message_has_one_effect(tmp_path: Path) -> None:
    delivered = await deliver_all(tmp_path, MESSAGES, ROUNDS)
    assert delivered == MESSAGES * AT_ONCE * ROUNDS == 500
