"""Answers: the first counts, the right person gives it, and the values fit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from agenthost import (
    Agent,
    Conflict,
    Denied,
    Grants,
    Principal,
    PrincipalKind,
    TurnState,
)
from agenthost.testing import Daemons, Pause
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_agents.agents import KeptAgents
from agenthost_approvals.desk import Desk, Reply
from agenthost_approvals.tables import approvals
from agenthost_records.tables import messages, turns
from sqlalchemy import Connection, func, select, update

from .stage import TOOLS, Shop, answer, ask, ends, listed, results, wait_until, waits

ADDRESS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "street": {"type": "string", "minLength": 1},
        "number": {"type": "integer", "minimum": 1},
    },
    "required": ["street"],
}


async def paying(
    daemons: Daemons, shop: Shop
) -> tuple[RunningDaemon, RunningAgent, dict[str, Any]]:
    """A daemon, an agent of it, and a turn of the agent that waits."""
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay", amount=5)
    return daemon, agent, await waits(agent, "pay")


async def test_of_many_answers_at_once_one_counts(daemons: Daemons, shop: Shop) -> None:
    daemon, _, told = await paying(daemons, shop)
    id_ = told["approval_id"]
    verbs = ["approve", "deny"] * 10
    given = await asyncio.gather(*(answer(daemon, id_, verb) for verb in verbs))
    (first,) = (n for n, each in enumerate(given) if each.status_code == 200)
    assert {each.status_code for each in given} == {200, 409}
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert len(shop.runs) == (verbs[first] == "approve")
    (row,) = await listed(daemon)
    assert row["state"] == given[first].json()["state"]
    assert row["answered_by"] == "loopback:loopback"


async def test_values_reach_the_tool(daemons: Daemons, shop: Shop) -> None:
    shop.asks["pay"] = ask("Where to?", schema=ADDRESS)
    daemon, _, told = await paying(daemons, shop)
    shown = (await daemon.http.get(f"/api/approvals/{told['approval_id']}")).json()
    assert shown["schema"] == ADDRESS
    assert shown["arguments"] == {"amount": 5}
    values = {"street": "Main", "number": 3}
    await answer(daemon, told["approval_id"], values=values)
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert shop.answers == [values]


@pytest.mark.conformance
@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "values.street"),
        ({"street": 5}, "values.street"),
        ({"street": ""}, "values.street"),
        ({"street": "x", "number": "1"}, "values.number"),
        ({"street": "x", "number": 0}, "values.number"),
        ({"street": "x", "number": True}, "values.number"),
        ({"street": "x", "else": 1}, "values.else"),
        ({"street": "x" * 10_001}, "values.street"),
        ([], "values"),
    ],
)
async def test_wrong_values_are_refused_by_name_and_nothing_is_changed(
    daemons: Daemons, shop: Shop, values: Any, field: str
) -> None:
    shop.asks["pay"] = ask("Where to?", schema=ADDRESS)
    daemon, _, told = await paying(daemons, shop)
    refused = await answer(daemon, told["approval_id"], values=values)
    assert refused.status_code == 400
    assert refused.json()["error"].startswith(f"{field}: ")
    assert (await listed(daemon))[0]["state"] == "pending"
    assert shop.runs == []


async def test_a_choice_is_one_of_those_offered(daemons: Daemons, shop: Shop) -> None:
    shop.asks["pay"] = ask("From which?", choices=("savings", "current"))
    daemon, _, told = await paying(daemons, shop)
    id_ = told["approval_id"]
    assert (await answer(daemon, id_)).status_code == 400
    assert (await answer(daemon, id_, values={"choice": "x"})).status_code == 400
    await answer(daemon, id_, values={"choice": "savings"})
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert shop.answers == [{"choice": "savings"}]


async def test_a_page_to_visit_is_shown(daemons: Daemons, shop: Shop) -> None:
    shop.asks["pay"] = ask("Log in first", url="https://bank.example/login")
    daemon, _, told = await paying(daemons, shop)
    shown = (await daemon.http.get(f"/api/approvals/{told['approval_id']}")).json()
    assert shown["url"] == "https://bank.example/login"


@pytest.mark.conformance
async def test_what_cannot_be_asked_is_refused(daemons: Daemons, shop: Shop) -> None:
    nested = {"type": "object", "properties": {"a": {"type": "object"}}}
    for bad in (
        ask(" "),
        ask("x" * 5000),
        ask(url="javascript:alert(1)"),
        ask(schema=nested),
        ask(schema=ADDRESS, choices=("a",)),
        ask(seconds=0),
        ask(seconds=float("nan")),
        ask(seconds=float("inf")),
    ):
        shop.asks["pay"] = bad
        daemon = await daemons.start(plugins=shop.plugins)
        agent = await daemon.agent(tools=TOOLS)
        daemon.model.calls("pay")
        assert (await agent.send("pay")).status_code == 200, bad
        assert "a person cannot be asked" in results(daemon)[0]
        await daemon.daemon.stop()
    assert shop.runs == []


async def test_what_is_too_long_to_read_cannot_be_approved(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay", note="x" * 300_000)
    assert (await agent.send("pay")).status_code == 200
    assert "too long for a person to read" in results(daemon)[0]
    assert shop.runs == []


def _principal(kind: PrincipalKind, name: str) -> Principal:
    return Principal(kind, name, Grants({"route": ("approvals:*",)}))


async def test_agents_never_answer_and_others_only_where_they_may(
    daemons: Daemons, shop: Shop
) -> None:
    shop.asks["pay"] = ask(may_answer="api_key:ann*")
    daemon, _, told = await paying(daemons, shop)
    desk = daemon.daemon.approvals
    assert isinstance(desk, Desk)
    yes, id_ = Reply(yes=True), told["approval_id"]
    for kind, name in (
        (PrincipalKind.AGENT, "tester"),
        (PrincipalKind.AGENT, "anna"),
        (PrincipalKind.ANONYMOUS, "anonymous"),
        (PrincipalKind.API_KEY, "bob"),
    ):
        with pytest.raises(Denied):
            await desk.answer(_principal(kind, name), id_, yes)
    assert (await answer(daemon, id_)).status_code == 403
    assert shop.runs == []
    shop.asks["pay"] = ask(may_answer="*")
    daemon.model.calls("pay")
    other = (await waits(await daemon.agent("other", tools=TOOLS), "pay"))[
        "approval_id"
    ]
    with pytest.raises(Denied, match="only people"):
        await desk.answer(_principal(PrincipalKind.AGENT, "other"), other, yes)
    assert shop.runs == []
    shop.asks["pay"] = ask(may_answer="api_key:ann*")
    await desk.answer(_principal(PrincipalKind.API_KEY, "anna"), id_, yes)
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1


async def test_the_digest_of_another_question_is_refused(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, _, told = await paying(daemons, shop)
    id_ = told["approval_id"]
    digest = (await daemon.http.get(f"/api/approvals/{id_}")).json()["digest"]
    assert (await answer(daemon, id_, digest="0" * 64)).status_code == 409
    assert (await answer(daemon, id_, digest=digest)).status_code == 200


async def test_arguments_that_were_changed_since_are_not_approved(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, _, told = await paying(daemons, shop)

    def change(connection: Connection) -> None:
        """Change the call, digest and all, behind the person's back."""
        from agenthost_records.codec import digest_of

        mine = messages.c.turn_id == told["turn_id"]
        for row in connection.execute(messages.select().where(mine)).mappings().all():
            parts = row["parts"].replace('"amount":5', '"amount":5000')
            values = {"parts": parts, "digest": digest_of(parts)}
            this = messages.c.id == row["id"]
            connection.execute(update(messages).where(this).values(**values))

    await daemon.daemon.store.write(change)
    await answer(daemon, told["approval_id"])

    async def asks_again() -> bool:
        return bool(await listed(daemon, state="pending"))

    await wait_until(asks_again, "the changed call is asked about")
    assert shop.runs == []
    (again,) = await listed(daemon, state="pending")
    shown = (await daemon.http.get(f"/api/approvals/{again['id']}")).json()
    assert shown["arguments"] == {"amount": 5000}


async def test_a_question_that_was_changed_in_the_store_cannot_be_approved(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, _, told = await paying(daemons, shop)
    less = func.replace(approvals.c.shown, '"amount": 5', '"amount": 1')
    changed = update(approvals).values(shown=less)
    await daemon.daemon.store.write(
        lambda connection: bool(connection.execute(changed))
    )
    refused = await answer(daemon, told["approval_id"])
    assert refused.status_code == 403
    assert "changed" in refused.json()["error"]
    assert shop.runs == []


async def ended_by(daemon: RunningDaemon, turn_id: str) -> tuple[str, int]:
    """The node and the epoch in a turn's row."""
    asked = select(turns.c.node, turns.c.epoch).where(turns.c.id == turn_id)
    [row] = await daemon.daemon.store.read(asked)
    return row["node"], row["epoch"]


async def test_a_stop_ends_what_waits_where_nothing_runs(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, agent, told = await paying(daemons, shop)
    stopped = await daemon.http.post(f"/api/agents/{agent.id}/stop")
    assert stopped.status_code == 200
    record = await daemon.daemon.journal.find(told["turn_id"])
    assert record is not None
    assert record.state is TurnState.CANCELLED
    assert await ended_by(daemon, told["turn_id"]) == ("main", 1)
    assert (await listed(daemon))[0]["state"] == "cancelled"
    assert (await answer(daemon, told["approval_id"])).status_code == 409
    assert shop.runs == []
    assert await agent.ask("next") == "You said: next"
    path = f"/api/agents/{agent.id}/turns/{told['turn_id']}/resume"
    assert (await daemon.http.post(path)).status_code == 409


async def test_a_stop_ends_what_runs_and_leaves_what_waits(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, agent, told = await paying(daemons, shop)
    pause = Pause()
    daemon.model.says("on and on", pause)
    running = agent.start("talk")
    await pause.reached.wait()
    await daemon.http.post(f"/api/agents/{agent.id}/stop")
    assert running.turn.ended
    assert (await listed(daemon))[0]["state"] == "pending"
    await answer(daemon, told["approval_id"])
    await ends(daemon, told["turn_id"], TurnState.DONE)


async def test_a_stop_of_all_ends_both(daemons: Daemons, shop: Shop) -> None:
    daemon, agent, told = await paying(daemons, shop)
    pause = Pause()
    daemon.model.says("on and on", pause)
    agent.start("talk")
    await pause.reached.wait()
    await daemon.http.post(f"/api/agents/{agent.id}/stop", params={"all": "true"})
    assert (await listed(daemon))[0]["state"] == "cancelled"
    await ends(daemon, told["turn_id"], TurnState.CANCELLED)


async def test_a_reset_withdraws_the_question(daemons: Daemons, shop: Shop) -> None:
    daemon, agent, told = await paying(daemons, shop)
    await daemon.http.post(f"/api/agents/{agent.id}/session/reset")
    assert (await listed(daemon))[0]["state"] == "cancelled"
    assert (await answer(daemon, told["approval_id"])).status_code == 409
    assert await agent.ask("next") == "You said: next"
    assert shop.runs == []


async def test_deleting_the_agent_withdraws_the_question(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, agent, told = await paying(daemons, shop)
    assert (await daemon.http.delete(f"/api/agents/{agent.id}")).status_code == 200
    assert (await answer(daemon, told["approval_id"])).status_code == 409
    assert (await listed(daemon))[0]["state"] == "cancelled"


async def test_a_question_of_a_session_that_was_erased_has_ended(
    daemons: Daemons, shop: Shop
) -> None:
    daemon, agent, told = await paying(daemons, shop)
    # As an archived session may be deleted by its id.
    records = daemon.daemon.sessions
    old = (await records.of_agent(agent.id)).id
    known: Agent = daemon.daemon.agents.get(agent.id)
    await daemon.daemon.agents.new_session(known, "", keep=False)
    with pytest.raises(Exception, match="not found"):
        await records.get(old)
    refused = await answer(daemon, told["approval_id"])
    assert refused.status_code == 409
    assert (await listed(daemon))[0]["state"] == "cancelled"


async def test_an_unknown_approval_is_404_and_a_bad_id_400(
    daemons: Daemons, shop: Shop
) -> None:
    daemon = await daemons.start(plugins=shop.plugins)
    nobody = "00000000-0000-4000-8000-000000000000"
    assert (await daemon.http.get(f"/api/approvals/{nobody}")).status_code == 404
    assert (await answer(daemon, nobody)).status_code == 404
    assert (await answer(daemon, "x")).status_code == 400
    assert (await daemon.http.get("/api/approvals?state=odd")).status_code == 400
    assert (await daemon.http.get("/api/approvals?limit=501")).status_code == 400


async def test_an_agent_cannot_flood_people(daemons: Daemons, shop: Shop) -> None:
    from agenthost_approvals.rows import PENDING_PER_AGENT

    daemon = await daemons.start(plugins=shop.plugins)
    agent = await daemon.agent(
        tools=TOOLS, extra="[resources]\nmax_tool_calls_per_minute = 0"
    )
    for _ in range(PENDING_PER_AGENT):
        daemon.model.calls("pay")
        await waits(agent, "pay")
    daemon.model.calls("pay")
    assert (await agent.send("pay")).status_code == 200
    assert "wait for a person already" in results(daemon)[-1]
    assert len(await listed(daemon)) == PENDING_PER_AGENT


async def test_a_suspended_agents_turn_goes_on_once_it_is_back(
    daemons: Daemons, shop: Shop
) -> None:
    from dataclasses import replace

    from agenthost.agent import AgentState
    from agenthost.testing import ManualClock

    clock = ManualClock()
    daemon = await daemons.start(plugins=shop.plugins, clock=clock)
    agent = await daemon.agent(tools=TOOLS)
    daemon.model.calls("pay")
    told = await waits(agent, "pay")
    agents = daemon.daemon.agents
    assert isinstance(agents, KeptAgents)
    known = agents.get(agent.id)
    agents._keep(replace(known, state=AgentState.SUSPENDED))
    await answer(daemon, told["approval_id"])
    desk = daemon.daemon.approvals
    assert isinstance(desk, Desk)

    async def put_off() -> bool:
        return bool(desk.keeper._not_before)

    await wait_until(put_off, "the turn is put off")
    with pytest.raises(Conflict):
        agents.get(agent.id).check_accepts_messages()
    agents._keep(known)
    await clock.advance(6)
    await ends(daemon, told["turn_id"], TurnState.DONE)
    assert len(shop.runs) == 1
