"""F13: a daemon whose clock is set, over kills and turns of zones, by libfaketime."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo

import pytest
from agenthost.testing.processes import DaemonProcess

from .model import model

SPEC = importlib.util.find_spec("libfaketime")
LIBRARY = (
    Path(SPEC.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
    if SPEC is not None and SPEC.origin is not None
    else Path("libfaketime is not installed")
)
HOUR = 3_600
# A day on which the clocks turn, the moment at which they do, and a time that they
# skip or repeat then.
TURNS = {
    "Europe/Berlin": (
        ("2026-03-29", "2026-03-29T01:00:00Z", "30 2 * * *"),
        ("2026-10-25", "2026-10-25T01:00:00Z", "30 2 * * *"),
    ),
    "America/New_York": (
        ("2026-03-08", "2026-03-08T07:00:00Z", "30 2 * * *"),
        ("2026-11-01", "2026-11-01T06:00:00Z", "30 1 * * *"),
    ),
    "Australia/Lord_Howe": (
        ("2026-10-04", "2026-10-03T15:30:00Z", "15 2 * * *"),
        ("2026-04-05", "2026-04-04T15:00:00Z", "45 1 * * *"),
    ),
}
pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or not LIBRARY.exists(),
        reason="libfaketime is a library of Linux, in the extra dev",
    ),
]


class Wall:
    """The wall clock of a process, which is set while its other clock runs on."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "now"

    def set(self, moment: float) -> None:
        # A whole file at once: the process reads it whenever it likes.
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{moment - time.time():+.3f}\n", encoding="ascii")
        fresh.rename(self._file)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def now(self) -> float:
        return time.time() + float(self._file.read_text(encoding="ascii"))


class Course:
    """One home, its daemon's lives, and its schedules."""

    def __init__(self, home: Path, wall: Wall) -> None:
        self._home = home
        self.wall = wall
        self.daemon = DaemonProcess(home, wall.environ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Killed as a crash would: no goodbye.
        self.daemon.__exit__(kind, error, trace)

    def make(self, **said: Any) -> str:
        body = {"name": "x", "what": {"event": "due"}, "misfire": "once", **said}
        answer = self.daemon.http.post("/api/schedules", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def schedules(self) -> list[Any]:
        return list(self.daemon.http.get("/api/schedules").json()["schedules"])

    def occasions(self, schedule: str) -> list[Any]:
        path = f"/api/schedules/{schedule}/occasions?limit=500"
        return list(self.daemon.http.get(path).json()["occasions"])

    def until(self, holds: Callable[[], bool], seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, self.daemon.log[-2_000:]
            time.sleep(0.05)

    def jump(self, moment: float) -> None:
        """Set the clock, and have the timer look, as it does each minute."""
        self.wall.set(moment)
        self.until(lambda: abs(self.looked() - self.wall.now()) < 30)
        self.settle()

    def looked(self) -> float:
        """Have the timer look at the clock, and tell what it shows."""
        path = f"/api/schedules/{self.make(when={'every_secs': 3_600})}"
        row = self.daemon.http.get(path).json()
        self.daemon.http.delete(path)
        return moment_of(row["created_at"])

    def kill(self, moment: float) -> None:
        """Die at once, and live again at a moment."""
        self.__exit__(None, None, None)
        self.wall.set(moment)
        self.daemon = DaemonProcess(self._home, self.wall.environ)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is due, and all that is begun has ended."""

        def settled() -> bool:
            rows = self.schedules()
            ahead = [moment_of(row["next_at"]) for row in rows]
            if min(ahead) <= self.wall.now():
                return False
            return all(
                each["ended_at"] for row in rows for each in self.occasions(row["id"])
            )

        self.until(settled)


def moment_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("zone", sorted(TURNS))
@pytest.mark.parametrize("turn", [0, 1], ids=["skipped", "repeated"])
def test_a_schedule_is_done_neither_twice_nor_never(
    tmp_path: Path, zone: str, turn: int
) -> None:
    day, turned, cron = TURNS[zone][turn]
    at = moment_of(turned)
    wall = Wall(tmp_path)
    wall.set(at - 2 * HOUR + 60)
    with Course(tmp_path / "home", wall) as course:
        crons = {
            course.make(when={"cron": c, "zone": zone}): c for c in (cron, "0 * * * *")
        }
        created = max(moment_of(row["created_at"]) for row in course.schedules())
        course.jump(at - 4)
        course.until(lambda: wall.now() > at + 1)
        course.settle()
        course.kill(at + 1)
        course.jump(at + 2 * HOUR + 5)
        course.jump(at - HOUR / 2)
        course.kill(at + HOUR - 3)
        course.until(lambda: wall.now() > at + HOUR + 1)
        course.settle()
        course.kill(at + 5 * HOUR + 7)
        end = wall.now()
        for schedule, said in crons.items():
            rows = course.occasions(schedule)
            times = list(model(said, ZoneInfo(zone), datetime.fromisoformat(day), 1))
            check(rows, [moment for moment in times if created < moment <= end])
        assert course.daemon.terminate() == 0


def check(rows: list[Any], times: list[float]) -> None:
    done = [moment_of(row["at"]) for row in rows if row["state"] == "done"]
    assert {row["state"] for row in rows} <= {"done", "missed"}
    assert len(done) == len(set(done)), "done twice"
    assert set(done) <= set(times), "done when it was not due"
    missed = [row["key"].partition("/") for row in rows if row["state"] == "missed"]
    spans = [(moment_of(first), moment_of(last or first)) for first, _, last in missed]
    for at in times:
        told = any(first <= at <= last for first, last in spans)
        assert at in done or told, f"neither done nor told of: {at}"
    assert len(rows) <= 2 * len(times), "a flood"


def test_a_jump_is_noticed_within_a_minute_by_itself(tmp_path: Path) -> None:
    wall = Wall(tmp_path)
    start = moment_of("2026-06-01T00:30:00Z")
    wall.set(start)
    with Course(tmp_path / "home", wall) as course:
        schedule = course.make(when={"cron": "0 * * * *"})
        wall.set(start + 3 * HOUR)
        course.until(lambda: len(course.occasions(schedule)) == 2, 65)
        done, missed = sorted(row["key"] for row in course.occasions(schedule))[::-1]
        assert done == "2026-06-01T03:00:00.000Z"
        assert missed == "2026-06-01T01:00:00.000Z/2026-06-01T02:00:00.000Z"
