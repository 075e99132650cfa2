"""Hostile web pages through a running daemon: it answers others all the while."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from agenthost.testing.processes import DaemonProcess

from tests.plugins.egress.wire import Heard, Wire, answer
from tests.plugins.tools.hostile import ENDLESS, PAGES, SLOW_CHARSET, TOO_LARGE
from tests.plugins.workers.running import children, runs, until

pytestmark = pytest.mark.faults

HEALTH_P99 = 0.1
"""Seconds, on top of what the machine makes of a daemon that has nothing to do."""

LONGEST_ANSWER = 15.0
"""Seconds for one page: fetching, two at most for Markdown, the words."""

LONGEST_OF_SEVEN = 30.0
"""Seconds for the last of seven such pages, with two processes."""

GONE_AFTER = 2.0
AGENTS = 7
CONFIG = '[web.fetch]\nallowed_hosts = ["127.0.0.1"]\n'
MANIFEST = (
    'name = "{name}"\n[model]\nprovider = "offline"\n[capabilities]\n'
    'tools = ["web_fetch", "file_list"]\nnetwork = ["127.0.0.1"]\n'
)
KINDS = {"/punycode": "text/html; charset=punycode", "/words": "text/plain"}


@dataclass
class Pulse(threading.Thread):
    """Asks for the daemon's health again and again, and keeps how long it took."""

    url: str
    waits: list[float] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=60, trust_env=False) as http:
            while not self._ended.wait(0.01):
                began = time.monotonic()
                assert http.get("/api/health").status_code == 200
                self.waits.append(time.monotonic() - began)

    def end(self) -> None:
        self._ended.set()
        self.join()

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.waits, n=100)[-1]


@contextmanager
def pulse_of(daemon: DaemonProcess) -> Iterator[Pulse]:
    beating = Pulse(str(daemon.http.base_url))
    beating.start()
    try:
        yield beating
    finally:
        beating.end()


def quiet_p99(daemon: DaemonProcess) -> float:
    """What health takes on this machine, now, when there are no pages."""
    with pulse_of(daemon) as pulse:
        while len(pulse.waits) < 100:
            time.sleep(0.01)
    return pulse.p99


@pytest.fixture
async def pages() -> AsyncIterator[Wire]:
    """A server of every page, by the number in its path."""
    served: Mapping[str, bytes] = {
        **{f"/{number}": page for number, page in enumerate(PAGES.values())},
        "/endless": ENDLESS,
        "/large": TOO_LARGE,
        "/words": b"words",
        "/punycode": SLOW_CHARSET,
    }

    async def script(heard: Heard, writer: asyncio.StreamWriter) -> None:
        path = heard.line.split()[1]
        kind = KINDS.get(path, "text/html")
        writer.write(answer(served[path], content_type=kind))
        await writer.drain()

    async with Wire(script) as wire:
        yield wire


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG)
    with DaemonProcess(home) as running:
        yield running


def agent(daemon: DaemonProcess, name: str) -> str:
    made = daemon.http.post(
        "/api/agents", json={"manifest_toml": MANIFEST.format(name=name)}
    )
    assert made.status_code == 201, made.text
    return str(made.json()["agent_id"])


async def asked(daemon: DaemonProcess, agent_id: str, text: str) -> float:
    """Send a message; return the seconds until its answer."""
    url = daemon.http.base_url
    began = time.monotonic()
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
        heard = await http.post(
            f"/api/agents/{agent_id}/message", json={"message": text}
        )
    assert heard.status_code == 200, heard.text
    said: dict[str, Any] = json.loads(heard.text)
    assert "internal error" not in said["response"]
    assert "too long" not in said["response"]
    return time.monotonic() - began


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def busy(pid: int) -> bool:
    """Whether a process uses the CPU or wants to."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "R"


def told(name: str, figure: float, limit: float) -> None:
    line = f"{name:45} {figure * 1000:8.1f} ms, limit {limit * 1000:.0f} ms"
    print(line)  # noqa: T201 - the figures are what these tests are run for


async def test_hostile_pages_one_after_another_stop_nobody(
    daemon: DaemonProcess, pages: Wire
) -> None:
    agent_id = agent(daemon, "reader")
    await asked(daemon, agent_id, f"fetch {pages.url}/0")
    limit = HEALTH_P99 + quiet_p99(daemon)
    slowest = {}
    with pulse_of(daemon) as pulse:
        for number, name in enumerate(PAGES):
            slowest[name] = await asked(daemon, agent_id, f"fetch {pages.url}/{number}")
    for name, seconds in slowest.items():
        told(name, seconds, LONGEST_ANSWER)
    told(f"health, p99 of {len(pulse.waits)}", pulse.p99, limit)
    assert len(slowest) == 24
    assert max(slowest.values()) < LONGEST_ANSWER
    assert pulse.p99 < limit


@pytest.mark.parametrize("page", ["endless", "large", "punycode"])
async def test_what_is_given_up_leaves_no_process_or_thread(
    daemon: DaemonProcess, pages: Wire, page: str
) -> None:
    agent_id, pid = agent(daemon, "reader"), daemon.process.pid
    # By the second one the daemon has warmed up: it starts no more threads of its own.
    for warming in ("words", page, "words", "words"):
        await asked(daemon, agent_id, f"fetch {pages.url}/{warming}")
    before = threads(pid)
    seconds = await asked(daemon, agent_id, f"fetch {pages.url}/{page}")
    told(f"the answer to {page}", seconds, LONGEST_ANSWER)
    assert seconds < LONGEST_ANSWER
    began = time.monotonic()
    await until(lambda: not children(pid) and threads(pid) <= before)
    told("until process and thread are gone", time.monotonic() - began, GONE_AFTER)
    assert time.monotonic() - began < GONE_AFTER


async def test_seven_endless_pages_leave_room_for_files(
    daemon: DaemonProcess, pages: Wire
) -> None:
    readers = [agent(daemon, f"reader{number}") for number in range(AGENTS)]
    lister = agent(daemon, "lister")
    limit = HEALTH_P99 + quiet_p99(daemon)
    with pulse_of(daemon) as pulse:
        fetches = [
            asyncio.create_task(asked(daemon, reader, f"fetch {pages.url}/endless"))
            for reader in readers
        ]
        await until(lambda: children(daemon.process.pid))
        listed = await asked(daemon, lister, "list files in .")
        fetched = await asyncio.gather(*fetches)
    told("file_list meanwhile", listed, 1.0)
    told("the last of seven pages", max(fetched), LONGEST_OF_SEVEN)
    told(f"health, p99 of {len(pulse.waits)}", pulse.p99, limit)
    assert listed < 1.0
    assert max(fetched) < LONGEST_OF_SEVEN
    assert pulse.p99 < limit


async def test_a_stop_amid_pages_leaves_no_process(
    daemon: DaemonProcess, pages: Wire
) -> None:
    reader = agent(daemon, "reader")
    fetch = asyncio.create_task(asked(daemon, reader, f"fetch {pages.url}/endless"))
    pid = daemon.process.pid
    await until(lambda: any(busy(child) for child in children(pid)))
    workers = children(pid)
    began = time.monotonic()
    assert await asyncio.to_thread(daemon.terminate) == 0
    stopped = time.monotonic()
    await until(lambda: not any(runs(worker) for worker in workers))
    told("the stop", stopped - began, 20.0)
    told("until the process is gone", time.monotonic() - stopped, GONE_AFTER)
    assert time.monotonic() - stopped < GONE_AFTER
    await asyncio.gather(fetch, return_exceptions=True)


async def test_a_killed_daemon_leaves_no_process(
    daemon: DaemonProcess, pages: Wire
) -> None:
    reader = agent(daemon, "reader")
    fetch = asyncio.create_task(asked(daemon, reader, f"fetch {pages.url}/endless"))
    pid = daemon.process.pid
    await until(lambda: any(busy(child) for child in children(pid)))
    workers = children(pid)
    daemon.kill()
    await until(lambda: not any(runs(worker) for worker in workers))
    await asyncio.gather(fetch, return_exceptions=True)
