"""A yes for a session or a pattern: it answers what it was said about, and no more."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import TurnState
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_approvals.remembering import fits

from .stage import TOOLS, Shop, answer, ask, ends, listed, waits


async def paid(
    daemons: Daemons, shop: Shop, **said: Any
) -> tuple[RunningDaemon, RunningAgent, str]:
    """A daemon, an agent, and its question that was answered with a yes."""
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay", amount=5, note="tea for two")
    told = await waits(agent, "pay")
    given = await answer(daemon, told["approval_id"], **said)
    assert given.status_code == 200, given.text
    await ends(daemon, told["turn_id"], TurnState.DONE)
    return daemon, agent, told["approval_id"]


async def pays(daemon: RunningDaemon, agent: RunningAgent, **call: Any) -> int:
    """Have the agent pay; the status of the answer: 202 when somebody is asked."""
    daemon.model.calls("pay", **{"amount": 5, "note": "tea for two", **call})
    return (await agent.send("pay")).status_code


async def test_a_yes_for_the_session_ends_with_the_session_or_when_revoked(
    daemons: Daemons, shop: Shop
) -> None:
    shop.asks["pay"] = ask()
    daemon, agent, id_ = await paid(daemons, shop, remember="session")
    assert await pays(daemon, agent, amount=9) == 200
    assert shop.runs == [("pay", 5), ("pay", 9)]
    (second,) = [row for row in await listed(daemon) if row["id"] != id_]
    # Each call has a row of its own, and who is to answer for it stands there.
    assert second["state"] == "approved"
    assert second["answered_by"] == "loopback:loopback"
    assert second["reason"] == f"as for the session with {id_}"
    revoked = await daemon.http.post(f"/api/approvals/{id_}/revoke")
    assert (revoked.status_code, revoked.json()["remember"]) == (200, "once")
    again = await daemon.http.post(f"/api/approvals/{id_}/revoke")
    assert again.status_code == 409
    assert await pays(daemon, agent) == 202


async def test_a_yes_answers_no_other_question_session_or_agent(
    daemons: Daemons, shop: Shop
) -> None:
    shop.asks["pay"] = ask()
    daemon, agent, _ = await paid(daemons, shop, remember="session")
    other = await daemon.agent("other", tools=TOOLS)
    assert await pays(daemon, other) == 202
    shop.asks["pay"] = ask("Shall it really be paid?")
    assert await pays(daemon, agent) == 202
    shop.asks["pay"] = ask()
    reset = await daemon.http.post(f"/api/agents/{agent.id}/session/reset")
    assert reset.status_code == 200
    assert await pays(daemon, agent) == 202


async def test_a_yes_for_a_pattern_holds_for_what_fits(
    daemons: Daemons, shop: Shop
) -> None:
    shop.asks["pay"] = ask()
    pattern = {"amount": "5", "note": "tea *"}
    daemon, agent, id_ = await paid(daemons, shop, remember="pattern", pattern=pattern)
    await daemon.http.post(f"/api/agents/{agent.id}/session/reset")
    assert await pays(daemon, agent, note="tea alone") == 200
    assert await pays(daemon, agent, note="coffee") == 202
    assert await pays(daemon, agent, note="tea; rm -r .") == 202
    assert await pays(daemon, agent, amount=50) == 202
    row = (await daemon.http.get(f"/api/approvals/{id_}")).json()
    assert (row["remember"], row["pattern"]) == ("pattern", pattern)


@pytest.mark.parametrize(
    "said",
    [
        {"pattern": {"amount": "5", "note": "*"}},
        {"remember": "session", "pattern": {"amount": "5", "note": "*"}},
        {"remember": "pattern"},
        {"remember": "pattern", "pattern": {"amount": "5"}},
        {"remember": "pattern", "pattern": {"amount": "6", "note": "*"}},
        {"remember": "pattern", "pattern": {"amount": "5", "note": "x" * 2_000}},
        {"remember": "always"},
    ],
)
async def test_what_cannot_hold_is_refused_and_the_question_stays(
    daemons: Daemons, shop: Shop, said: dict[str, Any]
) -> None:
    shop.asks["pay"] = ask()
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay", amount=5, note="tea")
    id_ = (await waits(agent, "pay"))["approval_id"]
    assert (await answer(daemon, id_, **said)).status_code == 400
    assert [row["state"] for row in await listed(daemon)] == ["pending"]


@pytest.mark.parametrize(
    ("pattern", "value", "holds"),
    [
        ("git *", "git log", True),
        ("git *", "git log\nrm -r .", False),
        ("git *", "git $(rm)", False),
        ("git *", "gitlog", False),
        ("docs/*", "docs/a/b.md", True),
        ("docs/*", "docs/../etc/passwd", False),
        ("*", "a;b", False),
        ("a;b", "a;b", True),
        ("5", 5, True),
        ("[1, *]", [1, 2], True),
        ("a" + "*a" * 20, "a" * 3_000 + "b", False),
    ],
)
def test_a_star_is_anything_that_ends_no_command(
    pattern: str, value: object, holds: bool
) -> None:
    assert fits({"x": pattern}, {"x": value}) is holds
    assert not fits({"x": pattern, "y": "*"}, {"x": value})
    assert not fits({}, {"x": value})
