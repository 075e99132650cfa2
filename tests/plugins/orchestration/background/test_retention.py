"""Ended occasions are kept for 30 days, and 1,000 of a source, with what was spent."""

from __future__ import annotations

import pytest
from agenthost.testing import Daemons
from agenthost_orchestration.background.errands import OccasionState
from agenthost_orchestration.background.purses import DAY, day_of
from agenthost_orchestration.background.retention import BATCH, Retention
from agenthost_orchestration.background.tables import occasions
from sqlalchemy import Connection, func, select, update

from .stage import stage_of

MOST = 10
"""The thousand of this test."""
COUNT = select(func.count()).select_from(occasions)


@pytest.mark.conformance
async def test_what_ended_long_ago_is_forgotten(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    host = stage.daemon.daemon
    now = host.clock.time()
    old, missed = now - 31 * DAY, OccasionState.MISSED
    many = [stage.occasion(state=missed, created_at=old) for _ in range(BATCH + 5)]
    fresh, due = stage.occasion(state=missed), stage.occasion(created_at=old)
    await stage.write(*many, fresh, due)
    await Retention(host).forget(now)
    left = {each.id for each in await stage.background.list(limit=500)}
    assert left == {fresh.id, due.id}


async def test_a_thousand_of_a_source_are_kept_and_what_was_spent_today(
    daemons: Daemons,
) -> None:
    stage = stage_of(await daemons.start())
    host = stage.daemon.daemon
    now, done = host.clock.time(), OccasionState.DONE
    paid = [
        stage.occasion(state=done, created_at=now - 50, cost_micro_usd=1)
        for _ in range(3)
    ]
    free = [stage.occasion(state=done, created_at=now - 60) for _ in range(BATCH + 5)]
    newest = [stage.occasion(state=done, created_at=now) for _ in range(MOST)]
    await stage.write(*paid, *free, *newest, stage.occasion("night", state=done))
    today = update(occasions).values(day=day_of(now))

    def count_today(connection: Connection) -> None:
        connection.execute(today)

    await host.store.write(count_today)
    await Retention(host, MOST).forget(now)
    (row,) = await host.store.read(COUNT)
    assert row[0] == MOST + len(paid) + 1
