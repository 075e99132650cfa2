"""The routes of occasions keep every promise of route groups."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agenthost.testing import Daemons, RoutesContract, RunningDaemon, Sample
from agenthost_orchestration.background.errands import OccasionState

from .stage import stage_of


@pytest.mark.conformance
class TestTheRoutesOfOccasions(RoutesContract):
    """``/api/occasions``."""

    plugin = "plugin:orchestration"
    group = "occasions"

    async def samples(self, daemon: RunningDaemon) -> Sequence[Sample]:
        """One that is due and one that was missed."""
        stage = stage_of(daemon)
        due = stage.occasion()
        missed = stage.occasion(state=OccasionState.MISSED)
        await stage.write(due, missed)
        path = {"occasion_id": due.id}
        return (
            Sample("GET /api/occasions", query={"state": "missed", "limit": "1"}),
            Sample("GET /api/occasions/<occasion_id>", path=path),
            Sample("POST /api/occasions/<occasion_id>/cancel", path=path),
        )


async def test_pages_of_a_list_have_each_occasion_once(daemons: Daemons) -> None:
    stage = stage_of(await daemons.start())
    # All of one moment: the order is that of their ids then.
    missed = OccasionState.MISSED
    made = [stage.occasion(state=missed, created_at=5.0 + n // 3) for n in range(9)]
    other = stage.occasion("night", state=missed)
    await stage.write(*made, other)
    seen: list[str] = []
    after = ""
    while True:
        query = {"source_id": "noon", "limit": "2", "after": after}
        answer = await stage.daemon.http.get("/api/occasions", params=query)
        page = [each["id"] for each in answer.json()["occasions"]]
        if not page:
            break
        seen += page
        after = page[-1]
    assert sorted(seen) == sorted(each.id for each in made)
    moments = {each.id: each.created_at for each in made}
    assert [moments[each] for each in seen] == sorted(moments.values(), reverse=True)


@pytest.mark.conformance
async def test_what_is_not_there_is_404(daemons: Daemons) -> None:
    daemon = await daemons.start()
    for path in ("/api/occasions/nothing", "/api/occasions?after=nothing"):
        assert (await daemon.http.get(path)).status_code == 404
    cancel = "/api/occasions/nothing/cancel"
    assert (await daemon.http.post(cancel)).status_code == 404
