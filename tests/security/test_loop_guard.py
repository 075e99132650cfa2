"""How many loops are stopped, how many honest turns are not, and what a call costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from tests.plugins.security.looping import Follower

from .figures import told
from .traces import Step, honest, loops, work

pytestmark = pytest.mark.security

AT_MOST = 200
CALLS = 12
MICROSECONDS = 100


def stopped_at(steps: Iterator[Step]) -> int:
    """Say which call was refused first; -1 for none."""
    follower = Follower()
    for number, step in enumerate(islice(steps, AT_MOST)):
        if follower.refuses(step):
            return number
    return -1


def test_loops_are_stopped_soon_after_they_closed() -> None:
    soon = stopped = 0
    for loop in loops():
        at = stopped_at(loop.steps())
        stopped += at >= 0
        # Before its first round is over, nobody can tell a loop.
        soon += 0 <= at - loop.before - loop.period <= CALLS
    told("loop_guard: loops stopped within 12 calls", "190 of 200", f"{soon} of 200")
    assert soon >= 190


def test_honest_turns_are_let_go_on() -> None:
    traces = honest()
    blocked = sum(stopped_at(iter(trace)) >= 0 for trace in traces)
    told("loop_guard: honest turns blocked", "2 of 200", f"{blocked} of 200")
    assert blocked <= 2


def test_a_call_costs_little() -> None:
    follower = Follower()
    steps = [
        Step(step.tool, {**step.arguments, "text": "x" * 2_000}, "word " * 800)
        for step in work(Random(1), 5_000)
    ]
    began = time.process_time()
    for step in steps:
        follower.refuses(step)
    each = (time.process_time() - began) / len(steps) * 1e6
    told("loop_guard: microseconds a call", str(MICROSECONDS), f"{each:.0f}")
    assert each <= MICROSECONDS
