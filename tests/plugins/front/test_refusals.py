"""Who is refused is told, and a flood of refusals is counted."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import (
    AgentHostError,
    Answer,
    Call,
    Conflict,
    Denied,
    Event,
    Grants,
    Host,
    Keep,
    Principal,
    PrincipalKind,
    Route,
    Unauthenticated,
    Unavailable,
)
from agenthost.testing import ManualClock
from agenthost_front.dispatch import Exchange, bind
from agenthost_front.gate import open_exchange
from agenthost_front.refusals import MOST, AccessRefused, Refusals


class Told:
    """Events and a store in one: what is kept is counted as rows."""

    def __init__(self) -> None:
        self.rows: list[AccessRefused] = []
        self.closed = False
        self.deaf = False

    def wants(self, kind: type[Event]) -> bool:
        assert kind is AccessRefused
        return not self.deaf

    def keeping(self, event: AccessRefused) -> Keep:
        if self.closed:
            raise Unavailable("the book is closed")
        return lambda _: self.rows.append(event)

    def publish(self, event: Event) -> None:
        assert event in self.rows

    async def write(self, keep: Keep) -> None:
        await asyncio.sleep(0)
        keep(cast("Any", None))

    @property
    def counts(self) -> dict[str, int]:
        """How many refusals the rows tell of, by whom."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row.subject] = found.get(row.subject, 0) + row.times
        return found


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def refusals(told: Told, clock: ManualClock) -> Refusals:
    return Refusals(cast("Host", SimpleNamespace(events=told, store=told, clock=clock)))


async def handler(call: Call) -> Answer:
    """Answer nothing."""
    return {}


ENDPOINT = bind("test", Route("GET", "/api/agents", handler, scope="agents:read"))
KEY = Principal(PrincipalKind.API_KEY, "ci", Grants())
WRONG = Unauthenticated("no such key")
NO_RIGHT = Denied("no right")


def asked(client: str = "192.0.2.1", path: str = "/api/agents") -> Exchange:
    scope = {"path": path, "headers": [], "client": (client, 1)}
    exchange = open_exchange(scope, "id")
    exchange.found = ENDPOINT
    return exchange


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_is_told_at_once_and_the_others_after_a_minute(
    refusals: Refusals, told: Told, clock: ManualClock
) -> None:
    for _ in range(3):
        refusals.note(asked(path="/api/agents?key=canary"), WRONG)
        await settled()
    [first] = told.rows
    assert (first.times, first.status, first.route) == (1, 401, "GET /api/agents")
    assert (first.client, first.reason) == ("192.0.2.1", "unauthenticated")
    await clock.advance(60)
    await settled()
    assert [row.times for row in told.rows] == [1, 2]
    await clock.advance(60)
    await settled()
    refusals.note(asked(), WRONG)
    await settled()
    assert [row.times for row in told.rows] == [1, 2, 1]
    await refusals.stop()


async def test_a_flood_of_wrong_keys_writes_few_rows(
    refusals: Refusals, told: Told, clock: ManualClock
) -> None:
    for number in range(100_000):
        refusals.note(asked(f"2001:db8::{number % 5_000:x}"), WRONG)
        if number % 1_000 == 0:
            await settled()
    assert len(told.rows) <= MOST + 1
    await clock.advance(60)
    await settled()
    assert len(told.rows) <= 2 * (MOST + 1)
    assert sum(told.counts.values()) == 100_000
    assert told.counts["others"] > 90_000
    await refusals.stop()


async def test_an_end_tells_what_was_counted(refusals: Refusals, told: Told) -> None:
    for _ in range(5):
        refusals.note(asked(), WRONG)
        await settled()
    await refusals.stop()
    assert [row.times for row in told.rows] == [1, 4]
    refusals.note(asked(), WRONG)
    await settled()
    assert len(told.rows) == 2


async def test_whose_right_is_missing_is_named(refusals: Refusals, told: Told) -> None:
    exchange = asked()
    exchange.principal = KEY
    refusals.note(exchange, NO_RIGHT)
    await refusals.stop()
    [row] = told.rows
    assert (row.subject, row.by, row.status) == ("api_key:ci", "api_key:ci", 403)


@pytest.mark.parametrize(
    "error", [Conflict("no"), AgentHostError("no"), ValueError("no")]
)
async def test_other_errors_are_no_refusals(
    refusals: Refusals, told: Told, error: Exception
) -> None:
    refusals.note(asked(), error)
    await refusals.stop()
    assert told.rows == []


async def test_paths_that_nobody_serves_are_not_told(
    refusals: Refusals, told: Told
) -> None:
    exchange = asked()
    exchange.found = None
    refusals.note(exchange, WRONG)
    told.deaf = True
    refusals.note(asked(), WRONG)
    await refusals.stop()
    assert told.rows == []


async def test_a_closed_trail_leaves_the_refusal(
    refusals: Refusals, told: Told, clock: ManualClock
) -> None:
    told.closed = True
    refusals.note(asked(), WRONG)
    await settled()
    refusals.note(asked(), WRONG)
    told.closed = False
    await clock.advance(60)
    await settled()
    assert [row.times for row in told.rows] == [1]
    await refusals.stop()
