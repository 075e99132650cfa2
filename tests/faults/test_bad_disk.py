"""The disk is full or fails: said so at once, nothing claimed, well again by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from tests.acceptance.test_offline import MANIFEST

from .disk import Disk, DiskFault
from .worlds import client

PATIENCE = 10.0
SLOW_MILLISECONDS = 300
FAULTS = {
    DiskFault.FULL: 507,
    DiskFault.SYNC_FAILS: 503,
    DiskFault.WRITE_FAILS: 503,
    DiskFault.READ_ONLY: 503,
}
QUICK = {DiskFault.FULL, DiskFault.SYNC_FAILS}
EACH = pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            fault,
            id=fault.name.lower(),
            marks=() if fault in QUICK else pytest.mark.faults,
        )
        for fault in FAULTS
    ],
)


class Speaker:
    """One agent's only client, which knows what it was promised."""

    def __init__(self, http: httpx.AsyncClient, agent: str) -> None:
        self.http = http
        self._path = f"/api/agents/{agent}"
        self.promised: list[str] = []
        self.refused: list[str] = []
        self.count = 0

    async def say(self) -> int:
        """Send a message; return the status."""
        self.count += 1
        text = f"message {self.count}"
        answer = await self.http.post(f"{self._path}/message", json={"message": text})
        (self.promised if answer.status_code == 200 else self.refused).append(text)
        return answer.status_code

    async def says_again(self) -> None:
        """Try until a message is taken."""
        async with asyncio.timeout(PATIENCE):
            while await self.say() != 200:
                pass

    async def reads(self) -> None:
        """What was promised is shown, once and in order; what was refused never is."""
        answer = await self.http.get(f"{self._path}/session")
        assert answer.status_code == 200, answer.text
        shown = answer.json()["messages"]
        asked = [m["content"] for m in shown if m["role"] == "User"]
        kept = [text for text in asked if text not in self.refused]
        assert kept == self.promised
        assert len(set(asked)) == len(asked)

    async def health(self) -> str:
        """The daemon's own word."""
        answer = await self.http.get("/api/health")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["status"])


@asynccontextmanager
async def speaking(disk: Disk) -> AsyncIterator[tuple[DaemonProcess, Speaker]]:
    """A daemon on the disk, and somebody who has spoken to it."""
    process = await asyncio.to_thread(DaemonProcess, disk.root, disk.environ)
    with process:
        async with client(str(process.http.base_url)) as http:
            manifest = MANIFEST.format(name="speaker")
            answer = await http.post("/api/agents", json={"manifest_toml": manifest})
            speaker = Speaker(http, answer.json()["agent_id"])
            assert await speaker.say() == 200
            yield process, speaker


@EACH
async def test_a_bad_disk_is_named_reads_go_on_and_it_is_well_again_by_itself(
    disk: Disk, fault: DiskFault
) -> None:
    async with speaking(disk) as (process, speaker):
        for _ in range(2):
            disk.fails(fault)
            for _ in range(3):
                assert await speaker.say() == FAULTS[fault]
            await speaker.reads()
            disk.heals()
            await speaker.says_again()
            assert await speaker.health() == "ok"
            await speaker.reads()
        process.kill()
        with await asyncio.to_thread(
            DaemonProcess, disk.root, disk.environ
        ) as next_one:
            async with client(str(next_one.http.base_url)) as http:
                speaker.http = http
                await speaker.reads()


@pytest.mark.conformance
@EACH
async def test_health_is_degraded_as_long_as_the_disk_is_bad(
    disk: Disk, fault: DiskFault
) -> None:
    async with speaking(disk) as (_, speaker):
        disk.fails(fault)
        assert await speaker.say() == FAULTS[fault]
        assert await speaker.health() == "degraded"


@pytest.mark.conformance
@EACH
async def test_a_daemon_on_a_bad_disk_ends_when_asked_to(
    disk: Disk, fault: DiskFault
) -> None:
    async with speaking(disk) as (process, speaker):
        disk.fails(fault)
        assert await speaker.say() == FAULTS[fault]
        await asyncio.to_thread(process.terminate, PATIENCE)


async def test_a_key_on_a_full_disk_is_refused_and_the_old_one_stays(
    disk: Disk,
) -> None:
    async with speaking(disk) as (_, speaker):
        path, body = "/api/providers/groq/key", {"api_key": "sk-full-disk"}
        disk.fails(DiskFault.FULL)
        answer = await speaker.http.post(path, json=body)
        assert answer.status_code == 507, answer.text
        disk.heals()
        answer = await speaker.http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        health = (await speaker.http.get("/api/health")).json()
        assert health["panic_count"] == 0


@pytest.mark.faults
@pytest.mark.parametrize("writer", ["message", "key"])
async def test_a_slow_disk_delays_nobody_who_does_not_write(
    disk: Disk, writer: str, figures: Callable[[str], None]
) -> None:
    async with speaking(disk) as (_, speaker):
        disk.fails(DiskFault.SLOW_SYNC, SLOW_MILLISECONDS)
        writing = asyncio.create_task(write(speaker, writer))
        longest = 0.0
        while not writing.done():
            started = time.perf_counter()
            await speaker.health()
            longest = max(longest, time.perf_counter() - started)
        assert writing.result() == 200
    figures(
        f"a sync takes {SLOW_MILLISECONDS} ms; health meanwhile at most "
        f"{longest * 1e3:.0f} ms (limit {SLOW_MILLISECONDS / 2:.0f})"
    )
    assert longest < SLOW_MILLISECONDS / 2e3


async def write(speaker: Speaker, what: str) -> int:
    if what == "message":
        return await speaker.say()
    body = {"api_key": "sk-slow-disk"}
    answer = await speaker.http.post("/api/providers/groq/key", json=body)
    return answer.status_code
