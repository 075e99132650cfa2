"""A source that has spent its allowance asks a person for as much again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from agenthost import Principal, PrincipalKind, ToolUse, Usage
from agenthost.testing import Daemons, ManualClock
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Answer
from agenthost_approvals.desk import Reply
from agenthost_approvals.spoken import line_of, lines_of
from agenthost_orchestration.background.errands import (
    Errand,
    Occasion,
    OccasionState,
)
from sqlalchemy import Connection, text

from ...approvals.stage import Shop, answer, ask, listed
from ..workflows.stage import shelve, step, workflow
from .stage import ME, Stage, Sundial, stage_of, wait_until
from .test_money import FakeRuns, review, with_runs

DEAR = Usage(1_000, 1_250)
"""3,500 micro-USD at the scripted model's prices: a whole allowance here."""
PATIENT = "[model]\nmax_tokens = 1000\n"


async def poor(daemons: Daemons, **options: Any) -> Stage:
    """A source that has spent all that it may today."""
    stage = stage_of(await daemons.start(**options))
    agent = await stage.daemon.agent("ada", ("pay",), PATIENT)
    errand = Errand(ME, agent.id, "one", allowance_micro_usd=3_500, title="tea")
    stage.dial.errands["noon"] = errand
    stage.daemon.model.says("dear", usage=DEAR)
    assert (await stage.done()).state is OccasionState.DONE
    return stage


async def asking(stage: Stage, source: str = "noon") -> tuple[Occasion, dict[str, Any]]:
    """Have an occasion of the source come to ask; give it with its question."""
    occasion = await stage.stands(await stage.due(source), OccasionState.WAITING)
    found = await listed(stage.daemon, state="pending", turn_id=occasion.id)
    assert len(found) == 1
    return occasion, found[0]


def dear_call(daemon: RunningDaemon) -> None:
    """Have the model call a tool, for all that is allowed."""
    use = ToolUse("call_dear", "pay", {"amount": 5})
    daemon.model._answers.append(Answer(calls=(use,), usage=DEAR))


async def test_a_yes_lets_it_go_on_with_as_much_again(daemons: Daemons) -> None:
    stage = await poor(daemons)
    occasion, question = await asking(stage)
    assert (question["kind"], question["tool"]) == ("expense", "")
    expense = question["expense"]
    assert expense["limit_usd"] == expense["more_usd"] == expense["used_usd"] == 0.0035
    assert "the schedule 'tea' on " in question["question"]
    shown = await stage.daemon.http.get(f"/api/approvals/{question['id']}")
    told = "\n".join(lines_of(shown.json()))
    assert "money: 0.0035 USD more; 0.0035 of 0.0035 used" in told
    assert "ada wants 0.0035 USD: May the schedule" in line_of(question)
    assert len(stage.daemon.model.requests) == 1
    assert (await answer(stage.daemon, question["id"])).status_code == 200
    done = await stage.ended(occasion.id)
    assert (done.state, done.text) == (OccasionState.DONE, "You said: one")
    again = await answer(stage.daemon, question["id"])
    assert again.status_code == 409
    # It has what was granted, and asks once that is spent too.
    stage.daemon.model.says("dear", usage=Usage(1_000, 1_230))
    assert (await stage.done()).state is OccasionState.DONE
    _, second = await asking(stage)
    assert second["expense"]["limit_usd"] == 0.007


async def test_a_no_refuses_it_and_names_who_said_so(daemons: Daemons) -> None:
    stage = await poor(daemons)
    occasion, question = await asking(stage)
    await answer(stage.daemon, question["id"], "deny", reason="too dear")
    refused = await stage.ended(occasion.id)
    assert (refused.state, refused.code) == (OccasionState.REFUSED, "not_granted")
    assert "loopback:" in refused.detail
    assert "too dear" in refused.detail
    # Nobody is asked a second time that day.
    next_one = await stage.done()
    assert (next_one.state, next_one.detail) == (OccasionState.REFUSED, refused.detail)
    assert await listed(stage.daemon, state="pending") == []
    assert len(stage.daemon.model.requests) == 1


@pytest.mark.conformance
@pytest.mark.setting("background.answer_seconds")
async def test_no_answer_in_time_is_a_no(daemons: Daemons) -> None:
    clock = ManualClock()
    config = "[background]\nanswer_seconds = 60\n"
    stage = await poor(daemons, clock=clock, config=config)
    occasion, question = await asking(stage)
    await clock.advance(61)
    refused = await stage.ended(occasion.id)
    assert (refused.state, refused.code) == (OccasionState.REFUSED, "not_granted")
    assert "no person answered in time" in refused.detail
    assert (await answer(stage.daemon, question["id"])).status_code == 409
    assert (await stage.done()).state is OccasionState.REFUSED


@pytest.mark.conformance
async def test_while_one_question_is_open_nothing_else_of_the_source_begins(
    daemons: Daemons,
) -> None:
    stage = await poor(daemons)
    _, question = await asking(stage)
    refused = await stage.done()
    assert (refused.state, refused.code) == (OccasionState.REFUSED, "quota_exceeded")
    assert question["id"] in refused.detail
    assert len(await listed(stage.daemon, state="pending")) == 1


@pytest.mark.conformance
async def test_turns_that_run_out_together_wait_behind_one_question(
    daemons: Daemons,
) -> None:
    stage = stage_of(await daemons.start())
    agent = await stage.daemon.agent("ada", (), PATIENT)
    errand = Errand(ME, agent.id, "one", allowance_micro_usd=10)
    stage.dial.errands["noon"] = errand
    made = [stage.occasion() for _ in range(4)]
    await stage.write(*made)
    stage.background.wake()

    async def settled() -> bool:
        found = [await stage.background.occasion(each.id) for each in made]
        begun = {OccasionState.WAITING, OccasionState.REFUSED}
        return {each.state for each in found} <= begun

    await wait_until(settled, "all wait or were refused")
    (question,) = await listed(stage.daemon)
    assert question["expense"]["used_usd"] == 0
    await answer(stage.daemon, question["id"], "deny")
    ended = [await stage.ended(each.id) for each in made]
    assert {each.state for each in ended} == {OccasionState.REFUSED}
    assert any(each.code == "not_granted" for each in ended)


@pytest.mark.conformance
async def test_a_yes_for_one_source_opens_no_other(daemons: Daemons) -> None:
    stage = await poor(daemons)
    stage.dial.errands["night"] = stage.dial.errands["noon"]
    stage.daemon.model.says("dear", usage=DEAR)
    assert (await stage.done("night")).state is OccasionState.DONE
    _, noon = await asking(stage)
    occasion, night = await asking(stage, "night")
    assert noon["expense"]["purse"] != night["expense"]["purse"]
    await answer(stage.daemon, noon["id"])
    await answer(stage.daemon, night["id"], "deny")
    assert (await stage.ended(occasion.id)).state is OccasionState.REFUSED
    assert (await stage.done()).state is OccasionState.DONE


@pytest.mark.conformance
async def test_of_two_answers_at_once_one_counts(daemons: Daemons) -> None:
    stage = await poor(daemons)
    occasion, question = await asking(stage)
    both = [answer(stage.daemon, question["id"], verb) for verb in ("approve", "deny")]
    told = await asyncio.gather(*both)
    assert sorted(each.status_code for each in told) == [200, 409]
    ended = await stage.ended(occasion.id)
    yes = told[0].status_code == 200
    assert ended.state is (OccasionState.DONE if yes else OccasionState.REFUSED)


@pytest.mark.conformance
@pytest.mark.parametrize("kind", [PrincipalKind.AGENT, PrincipalKind.ANONYMOUS])
async def test_no_agent_may_grant_money(daemons: Daemons, kind: str) -> None:
    from agenthost import Denied
    from agenthost_approvals.routes import desk_of

    stage = await poor(daemons)
    _, question = await asking(stage)
    desk = desk_of(stage.daemon.daemon)
    with pytest.raises(Denied):
        await desk.answer(Principal(kind, "ada"), question["id"], Reply(yes=True))
    assert len(await listed(stage.daemon, state="pending")) == 1


@pytest.mark.conformance
async def test_where_nobody_can_be_asked_it_is_refused(daemons: Daemons) -> None:
    off = '[plugins]\ndisable = ["plugin:approvals"]\n'
    stage = await poor(daemons, config=off)
    refused = await stage.done()
    assert (refused.state, refused.code) == (OccasionState.REFUSED, "quota_exceeded")


@pytest.mark.conformance
async def test_a_cancelled_occasion_withdraws_its_question(daemons: Daemons) -> None:
    stage = await poor(daemons)
    occasion, question = await asking(stage)
    path = f"/api/occasions/{occasion.id}/cancel"
    assert (await stage.daemon.http.post(path)).status_code == 200
    assert (await stage.ended(occasion.id)).state is OccasionState.CANCELLED
    assert await listed(stage.daemon, state="pending") == []
    assert (await answer(stage.daemon, question["id"])).status_code == 409


@pytest.mark.conformance
async def test_it_runs_out_in_the_middle_and_goes_on_there(daemons: Daemons) -> None:
    shop = Shop()
    stage = stage_of(await daemons.start(plugins=shop.plugins))
    agent = await stage.daemon.agent("ada", ("pay",), PATIENT)
    errand = Errand(ME, agent.id, "pay 5", allowance_micro_usd=3_500)
    stage.dial.errands["noon"] = errand
    dear_call(stage.daemon)
    occasion, question = await asking(stage)
    assert shop.runs == [("pay", 5)]
    await answer(stage.daemon, question["id"])
    done = await stage.ended(occasion.id)
    assert (done.state, shop.runs) == (OccasionState.DONE, [("pay", 5)])


@pytest.mark.conformance
@pytest.mark.parametrize("verb", ["approve", "deny"])
async def test_it_is_answered_after_a_start_too(daemons: Daemons, verb: str) -> None:
    first = await poor(daemons)
    occasion, question = await asking(first)
    home = first.daemon.daemon.home
    await first.daemon.daemon.stop()
    stage = stage_of(
        await daemons.start(home=home), Sundial(errands=first.dial.errands)
    )
    await answer(stage.daemon, question["id"], verb)
    ended = await stage.ended(occasion.id)
    yes = verb == "approve"
    assert ended.state is (OccasionState.DONE if yes else OccasionState.REFUSED)
    after = await stage.done()
    assert after.state is (OccasionState.DONE if yes else OccasionState.REFUSED)


@pytest.mark.conformance
async def test_a_yes_without_orchestration_sets_no_turn_free_of_limits(
    daemons: Daemons,
) -> None:
    first = await poor(daemons)
    _, question = await asking(first)
    home = first.daemon.daemon.home
    await first.daemon.daemon.stop()
    off = {"AGENTHOST_PLUGINS__DISABLE": "plugin:orchestration"}
    second = await daemons.start(home=home, environ=off)
    dear_call(second)
    await answer(second, question["id"])

    async def asked_again() -> bool:
        return bool(await listed(second, state="pending"))

    await wait_until(asked_again, "it asks again once that is spent")


@pytest.mark.conformance
async def test_a_run_is_given_what_is_left_and_a_question_of_its_own(
    daemons: Daemons,
) -> None:
    runs = FakeRuns(cost=1_000)
    stage = await with_runs(daemons, runs)
    stage.dial.errands["noon"] = review(allowance_micro_usd=1_000)
    first = await stage.done()
    second = await stage.done()
    limits = [each.max_cost for each in runs.started.values()]
    assert limits == [1_000, 0]
    assert [first.state, second.state] == [OccasionState.DONE] * 2


@pytest.mark.conformance
async def test_a_question_about_a_call_is_none_about_money(daemons: Daemons) -> None:
    """A purse with room goes on while another occasion waits for a tool's question."""
    shop = Shop(asks={"pay": ask()})
    stage = stage_of(await daemons.start(plugins=shop.plugins))
    agent = await stage.daemon.agent("ada", ("pay",))
    stage.dial.errands["noon"] = Errand(ME, agent.id, "pay 5")
    stage.daemon.model.calls("pay", amount=5)
    await stage.stands(await stage.due(), OccasionState.WAITING)
    assert (await stage.done()).state is OccasionState.DONE


@pytest.mark.conformance
async def test_an_amount_that_was_changed_in_the_store_is_no_grant(
    daemons: Daemons,
) -> None:
    stage = await poor(daemons)
    occasion, question = await asking(stage)
    store = stage.daemon.daemon.store

    def enlarge(connection: Connection) -> None:
        wider = "replace(shown, '\"more_micro_usd\": 3500', '\"more_micro_usd\": 9500')"
        connection.execute(text(f"UPDATE approvals SET shown = {wider}"))

    await store.write(enlarge)
    assert (await answer(stage.daemon, question["id"])).status_code == 403
    assert (await stage.background.occasion(occasion.id)).state is OccasionState.WAITING


@pytest.mark.conformance
async def test_a_run_that_was_denied_ends_the_day_of_its_source(
    daemons: Daemons,
) -> None:
    """The question of a run is a part of its source's purse, and of no other's."""
    daemon = await daemons.start()
    await daemon.agent("tester", extra=PATIENT)
    stage = stage_of(daemon)
    flow = workflow(step("one"), step("two"))
    await shelve(daemon, flow)
    errand = Errand(ME, workflow_id=flow.id, input="x", allowance_micro_usd=3_500)
    stage.dial.errands["noon"] = errand
    daemon.model.says("dear", usage=DEAR)
    due = await stage.stands(await stage.due(), OccasionState.WAITING)
    (question,) = await listed(daemon, state="pending")
    assert question["expense"]["purse"].endswith(f"/{due.id}")
    waits = await stage.done()
    assert (waits.state, waits.code) == (OccasionState.REFUSED, "quota_exceeded")
    await answer(daemon, question["id"], "deny")
    assert (await stage.ended(due.id)).state is OccasionState.REFUSED
    later = await stage.done()
    assert (later.state, later.code) == (OccasionState.REFUSED, "not_granted")
    # Who raises the allowance, or has another source, is heard.
    richer = replace(errand, allowance_micro_usd=100_000)
    for source in ("noon", "night"):
        stage.dial.errands[source] = richer
        assert (await stage.done(source)).state is OccasionState.DONE


@pytest.mark.conformance
async def test_a_run_asks_nobody_where_its_source_is_to_be_refused(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config='[background]\nover_allowance = "refuse"\n')
    await daemon.agent("tester", extra=PATIENT)
    stage, flow = stage_of(daemon), workflow(step("one"))
    await shelve(daemon, flow)
    errand = Errand(ME, workflow_id=flow.id, input="x", allowance_micro_usd=10)
    stage.dial.errands["noon"] = errand
    done = await stage.done()
    assert (done.state, done.code) == (OccasionState.FAILED, "quota_exceeded")
    assert await listed(daemon) == []
