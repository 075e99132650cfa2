"""What the kernel knows of a process: CPU, memory, children; and times of commands."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_PROCESS_CPU_CLOCK = 2
"""Linux: the clock id ``(~pid << 3) | 2`` counts the CPU of all threads of ``pid``."""


def cpu_seconds(pid: int) -> float:
    """CPU a process has used, threads that have ended included."""
    return time.clock_gettime((~pid << 3) | _PROCESS_CPU_CLOCK)


def children(pid: int) -> list[int]:
    """Pids of the direct children of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def tree(pid: int) -> list[int]:
    """The process and everything below it."""
    return [pid, *(each for child in children(pid) for each in tree(child))]


def tree_cpu(pid: int) -> float:
    """CPU seconds of the process and everything alive below it."""
    return sum(cpu_seconds(each) for each in tree(pid))


def pss_kb(pid: int) -> int:
    """Memory of a process tree in kB, shared pages divided among their users.

    Raises:
        PermissionError: The process is not dumpable, and this one is not root's.
    """
    return sum(_pss_of_one(each) for each in tree(pid))


def _pss_of_one(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def cpu_of(pid: int, work: Callable[[], object]) -> float:
    """CPU seconds that a process tree spends while the work is done."""
    before = tree_cpu(pid)
    work()
    return tree_cpu(pid) - before


def wall_of(argv: Sequence[str], times: int) -> float:
    """Median wall seconds of a command."""
    return statistics.median(_wall(argv) for _ in range(times))


def _wall(argv: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
