"""What the ends of a daemon advise for its next start."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from agenthost import find_plugins
from agenthost_cli import caution
from agenthost_cli.caution import look_back
from agenthost_cli.incidents import MOST_BYTES, WINDOW, Incidents

from tests.kernel.plugins.entries import AGENTHOST, OTHER, entry


@dataclass
class Clock:
    at: float = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def incidents(tmp_path: Path, clock: Clock) -> Incidents:
    return Incidents(tmp_path, clock)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_plugins(
        [
            entry("plugin:wild", dist=OTHER),
            entry("plugin:calm", dist=OTHER),
            entry("tool:own", dist=AGENTHOST),
            entry("plugin:front", dist=AGENTHOST),
        ]
    )
    monkeypatch.setattr(caution, "find_plugins", lambda: found)


def advised(incidents: Incidents, tmp_path: Path) -> dict[str, str]:
    return look_back(incidents, tmp_path / "last_stack.txt").left_out


def stands_still_and_dies(incidents: Incidents, plugin: str) -> None:
    incidents.note("starting")
    incidents.note("serving")
    incidents.note("stalled", plugin=plugin)


def test_a_new_home_advises_nothing(incidents: Incidents, tmp_path: Path) -> None:
    assert advised(incidents, tmp_path) == {}


@pytest.mark.parametrize("plugin", ["plugin:wild", "tool:own"])
def test_three_forced_ends_in_a_plugin_leave_it_out(
    incidents: Incidents, tmp_path: Path, plugin: str
) -> None:
    for _ in range(2):
        stands_still_and_dies(incidents, plugin)
    assert advised(incidents, tmp_path) == {}
    stands_still_and_dies(incidents, plugin)
    assert list(advised(incidents, tmp_path)) == [plugin]


def test_what_the_daemon_cannot_be_without_is_not_left_out(
    incidents: Incidents, tmp_path: Path
) -> None:
    for _ in range(4):
        stands_still_and_dies(incidents, "plugin:front")
    assert advised(incidents, tmp_path) == {}


def test_what_is_ten_minutes_old_no_longer_counts(
    incidents: Incidents, tmp_path: Path, clock: Clock
) -> None:
    for _ in range(3):
        stands_still_and_dies(incidents, "plugin:wild")
    clock.at += WINDOW + 1
    assert advised(incidents, tmp_path) == {}


def test_a_stall_that_went_by_is_no_forced_end(
    incidents: Incidents, tmp_path: Path
) -> None:
    for _ in range(5):
        stands_still_and_dies(incidents, "plugin:wild")
        incidents.note("recovered")
    assert advised(incidents, tmp_path) == {}


def test_three_starts_that_died_make_the_next_one_safe(
    incidents: Incidents, tmp_path: Path
) -> None:
    for _ in range(3):
        incidents.note("starting")
    found = look_back(incidents, tmp_path / "last_stack.txt")
    assert sorted(found.left_out) == ["plugin:calm", "plugin:wild"]
    (warning,) = found.warnings
    assert "3 starts in ten minutes did not come to serve" in warning


@pytest.mark.parametrize("what", ["serving", "refused", "ended"])
def test_a_start_that_served_or_was_refused_is_not_a_failed_one(
    incidents: Incidents, tmp_path: Path, what: str
) -> None:
    for _ in range(5):
        incidents.note("starting")
        incidents.note(what)
    assert advised(incidents, tmp_path) == {}


def test_an_orderly_end_wipes_the_slate(incidents: Incidents, tmp_path: Path) -> None:
    for _ in range(3):
        incidents.note("starting")
    for _ in range(3):
        stands_still_and_dies(incidents, "plugin:wild")
    incidents.note("ended")
    assert advised(incidents, tmp_path) == {}


DUMP = """Timeout (0:00:36)!
Thread 0x00007f0000000001 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait

Thread 0x00007f0000000002 (most recent call first):
  File "/usr/lib/python3.11/json/decoder.py", line 1 in scan
  File "/site/wild.py", line 12 in fault
  File "/site/front.py", line 1 in call
"""


def test_the_stacks_of_a_forced_end_are_charged_once(
    incidents: Incidents, tmp_path: Path
) -> None:
    dump = tmp_path / "last_stack.txt"
    for _ in range(3):
        incidents.note("starting")
        incidents.note("serving", places={"/site/wild.py": "plugin:wild"})
        dump.write_text(DUMP)
        left_out = look_back(incidents, dump).left_out
        assert dump.read_text() == ""
        assert look_back(incidents, dump).left_out == left_out
    assert list(left_out) == ["plugin:wild"]


def test_a_stall_that_was_noted_and_left_its_stacks_counts_once(
    incidents: Incidents, tmp_path: Path
) -> None:
    dump = tmp_path / "last_stack.txt"
    for _ in range(2):
        stands_still_and_dies(incidents, "plugin:wild")
        dump.write_text(DUMP)
        assert look_back(incidents, dump).left_out == {}


@pytest.mark.parametrize("rest", ["", "{", "[]\n", '{"what": 1}\n', "\xff\n", "null\n"])
def test_a_line_that_cannot_be_read_is_passed_over(
    incidents: Incidents, tmp_path: Path, rest: str
) -> None:
    for _ in range(3):
        incidents.note("starting")
    with (tmp_path / "incidents.jsonl").open("a", encoding="latin-1") as file:
        file.write(rest)
    assert len(advised(incidents, tmp_path)) == 2


def test_the_file_is_its_owners_alone_and_does_not_grow(
    incidents: Incidents, tmp_path: Path, clock: Clock
) -> None:
    file = tmp_path / "incidents.jsonl"
    incidents.note("serving", places={"/x": "y" * MOST_BYTES})
    clock.at += WINDOW + 1
    incidents.note("starting")
    incidents.shorten()
    assert file.stat().st_size < 1000
    assert file.stat().st_mode & 0o777 == 0o600
    assert incidents.failed_starts() == 1


def test_a_home_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    incidents = Incidents(tmp_path / "none", Clock())
    incidents.note("starting", sync=True)
    incidents.shorten()
    assert advised(incidents, tmp_path / "none") == {}


def test_another_process_of_the_same_id_means_the_first_one_died(
    incidents: Incidents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container it is always process 1."""
    for pid in (1, 1, 2):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        incidents.note("starting")
    assert incidents.failed_starts() == 3
