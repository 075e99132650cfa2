"""The power fails at any moment: what was acknowledged is on disk, and nothing broken.

Every write and sync of a real daemon under load is recorded. Then the power is cut at
moments of that record: what was not synced is dropped, kept in part or torn.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.processes import DaemonProcess

from tests.acceptance.test_offline import MANIFEST

from .disk import Disk, PowerCut
from .worlds import client

KEYS = ("groq", "mistral", "together", "xai")
TALKERS = 4
LONGEST_LOAD = 300.0
# Every message counts here, so compaction must not hide the older ones.
# A key that is set would have the daemon choose its provider, and ask it.
ENVIRON = {
    "AGENTHOST_COMPACTION__THRESHOLD_MESSAGES": "1000000",
    "AGENTHOST_DEFAULT_MODEL__PROVIDER": "offline",
}


@dataclass
class Acks:
    """What was acknowledged, with the moment of the disk at which it was."""

    wanted: int
    said: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    stored: list[tuple[int, str, str]] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    def count(self) -> None:
        """One more was acknowledged."""
        self.wanted -= 1
        if self.wanted == 0:
            self.enough.set()


async def under_load(disk: Disk, acks: int) -> Acks:
    """Write to a daemon until so much is acknowledged; then kill it."""
    process = await asyncio.to_thread(DaemonProcess, disk.root, disk.environ | ENVIRON)
    seen = Acks(acks)
    with process:
        async with client(str(process.http.base_url)) as http:
            agents = [await create(http, f"agent{n}") for n in range(TALKERS)]
            work = [talk(http, disk, seen, agent) for agent in agents]
            work += [store(http, disk, seen, agents[0]), set_keys(http, disk, seen)]
            tasks = [asyncio.create_task(each) for each in work]
            await asyncio.wait_for(seen.enough.wait(), LONGEST_LOAD)
            process.kill()
            await asyncio.gather(*tasks, return_exceptions=True)
    return seen


async def create(http: httpx.AsyncClient, name: str) -> str:
    answer = await http.post(
        "/api/agents", json={"manifest_toml": MANIFEST.format(name=name)}
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["agent_id"])


async def talk(http: httpx.AsyncClient, disk: Disk, seen: Acks, agent: str) -> None:
    """Send messages, some of which call a tool that writes."""
    acked = seen.said.setdefault(agent, [])
    for number in range(1_000_000):
        text = f"remember k is {number}" if number % 3 else f"message {number}"
        path = f"/api/agents/{agent}/message"
        answer = await http.post(path, json={"message": text})
        assert answer.status_code == 200, answer.text
        acked.append((disk.moment, text))
        seen.count()


async def store(http: httpx.AsyncClient, disk: Disk, seen: Acks, agent: str) -> None:
    """Put values, each under a key of its own."""
    for number in range(1_000_000):
        path = f"/api/memory/agents/{agent}/kv/key{number}"
        answer = await http.put(path, json={"value": number})
        assert answer.status_code == 200, answer.text
        seen.stored.append((disk.moment, path, str(number)))
        seen.count()


async def set_keys(http: httpx.AsyncClient, disk: Disk, seen: Acks) -> None:
    """Set providers' keys, one after another."""
    for slug in KEYS:
        body = {"api_key": "sk-power-cut"}
        answer = await http.post(f"/api/providers/{slug}/key", json=body)
        assert answer.status_code == 200, answer.text
        seen.keys[slug] = disk.moment
        seen.count()


async def check(host: RunningDaemon, acks: Acks, moment: int) -> int:
    """Everything acknowledged until this moment is there; return how much it was."""
    checked = 0
    for agent, said in acks.said.items():
        known = [text for when, text in said if when <= moment]
        if known:
            session = await host.http.get(f"/api/agents/{agent}/session")
            assert session.status_code == 200, session.text
            shown = session.json()["messages"]
            asked = [m["content"] for m in shown if m["role"] == "User"]
            assert asked[: len(known)] == known, "an acknowledged message is lost"
            checked += len(known)
    for when, path, value in acks.stored:
        if when <= moment:
            answer = await host.http.get(path)
            assert answer.status_code == 200, f"{path} is lost: {answer.text}"
            assert answer.json()["value"] == int(value), answer.text
            checked += 1
    listed = await host.http.get("/api/providers")
    assert listed.status_code == 200, f"the vault is broken: {listed.text}"
    status = {row["name"]: row["auth_status"] for row in listed.json()["providers"]}
    for slug, when in acks.keys.items():
        if when <= moment:
            assert status[slug] == "configured", f"the key of {slug} is lost"
            checked += 1
    return checked


async def cut_at(
    daemons: Daemons, home: Path, judge: Callable[[RunningDaemon], Awaitable[int]]
) -> int:
    """Start a daemon on what is left and judge it."""
    host = await daemons.start(home=home, environ=ENVIRON)
    checked = await judge(host)
    await daemons.close()
    with closing(sqlite3.connect(home / "data/agenthost.db")) as connection:
        (verdict,) = connection.execute("pragma integrity_check").fetchone()
    assert verdict == "ok", verdict
    return checked


async def campaign(
    disk: Disk, daemons: Daemons, folder: Path, *, acks: int, cuts: int
) -> str:
    seen = await under_load(disk, acks)
    changes = disk.changes()
    chance = random.Random(3)
    power = PowerCut(changes, disk.root)
    checked = 0
    # Cut at syncs too, where a promise was just made.
    for number in sorted(chance.sample(range(1, len(changes) + 1), cuts)):
        moment = power.go_to(number)
        home = folder / f"cut{number}"
        power.leave(home, chance)
        checked += await cut_at(daemons, home, lambda h, m=moment: check(h, seen, m))  # type: ignore[misc]
    syncs = sum(change.kind == "S" for change in changes)
    return (
        f"{len(changes)} changes, {syncs} syncs, {cuts} cuts, {acks} acks: "
        f"0 lost of {checked} looked for (limit 0), 0 corrupt (limit 0)"
    )


async def test_a_power_cut_loses_nothing_acknowledged(
    disk: Disk, daemons: Daemons, tmp_path: Path
) -> None:
    await campaign(disk, daemons, tmp_path, acks=60, cuts=10)


@pytest.mark.faults
async def test_power_cuts_at_many_moments_lose_nothing_acknowledged(
    disk: Disk, daemons: Daemons, tmp_path: Path, figures: Callable[[str], None]
) -> None:
    figures(await campaign(disk, daemons, tmp_path, acks=800, cuts=300))
