"""The limiter against exact arithmetic, a million addresses, and the clock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from agenthost import Guard, RequestCase
from agenthost.plugins.guards import Guards
from agenthost_security import gcra_rate_limiter

from tests.plugins.security.gcra_rate_limiter.exact import compare

pytestmark = pytest.mark.security
Figures = Callable[[str], None]

MILLION = """
from agenthost import ALLOW, RequestCase
from agenthost_security.gcra_rate_limiter.limiter import Limiter

def resident():
    with open("/proc/self/statm") as facts:
        return int(facts.read().split()[1]) * 4096

def case(number, cost):
    return RequestCase("GET", "/", ".".join(map(str, number.to_bytes(4))), cost)

limiter = Limiter(lambda: 0.0)
limiter(case(0, 1))
before = resident()
for number in range(1_000_000):
    limiter(case(10 << 24 | number, 500))
grown = resident() - before
again = (case(10 << 24 | number, 1) for number in range(0, 1_000_000, 100))
let_in = [each for each in again if limiter(each) == ALLOW]
print(grown, len(let_in))
"""


def test_it_judges_a_million_requests_as_exact_arithmetic_does(
    figures: Figures,
) -> None:
    wrong = [
        each
        for units, burst in ((500, 500), (7, 100), (60_000, 50), (499, 501))
        for each in compare(250_000, units, burst, seed=units)
    ]
    figures(f"judged otherwise: target 0 of 1,000,000, result {len(wrong)}")
    assert not wrong


def test_a_million_clients_that_all_owe_take_little_memory(figures: Figures) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MILLION],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    grown, forgotten = map(int, done.stdout.split())
    figures(
        f"1,000,000 addresses: target 64 MB, result {grown / 1e6:.0f} MB; "
        f"forgotten while they owed: target 1 %, result {forgotten / 100:.2f} %"
    )
    assert grown < 64e6
    assert forgotten < 100


def test_it_takes_little_of_a_request(figures: Figures) -> None:
    guards, count = Guards(), 200_000
    point = replace(Guard.REQUEST)
    guards.compile([gcra_rate_limiter.security_system()], points=[point])
    clients = [f"10.{n >> 8}.{n & 255}.1" for n in range(20_000)]
    begun = time.process_time()
    for number in range(count):
        client = clients[number % len(clients)]
        guards.check(point, RequestCase("GET", "/api/health", client, 0))
    took = (time.process_time() - begun) / count * 1e6
    figures(f"CPU a request: target 20 us, result {took:.1f} us")
    assert took < 20
