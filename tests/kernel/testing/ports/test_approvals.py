"""The contract of approvals finds who breaks it; the shipped desk is what is broken."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agenthost import (
    Approvals,
    ApprovalsBackend,
    Ask,
    Conflict,
    Context,
    Host,
    InvalidInput,
    JsonObject,
    NotFound,
    Principal,
    PrincipalKind,
    ToolUse,
    Waiting,
)
from agenthost.testing import ApprovalsContract, Daemons, PersonSaid
from agenthost.testing.ports.stage import Stage
from agenthost_approvals.desk import Desk, Reply

from .finding import names_in, names_of
from .staged import name_of, stage_finds


async def answer(host: Host, approval_id: str, said: PersonSaid) -> None:
    """Answer as the routes do."""
    assert isinstance(host.approvals, Desk)
    reply = Reply(said.yes, said.reason, said.values)
    await host.approvals.answer(said.who, approval_id, reply)


class LetsAllPass(Desk):
    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        return {}


class TakesNoForYes(Desk):
    async def answer(self, principal: Principal, approval_id: str, reply: Reply) -> Any:
        yes = replace(reply, yes=True)
        return await super().answer(principal, approval_id, yes)


class LosesReasons(Desk):
    async def answer(self, principal: Principal, approval_id: str, reply: Reply) -> Any:
        silent = replace(reply, reason="")
        return await super().answer(principal, approval_id, silent)


class WaitsForEver(Desk):
    def _row(self, *given: Any) -> dict[str, Any]:
        row = super()._row(*given)
        return {**row, "deadline": row["deadline"] + 86_400.0}


class AsksAgain(Desk):
    def _row(self, *given: Any) -> dict[str, Any]:
        row = super()._row(*given)
        return {**row, "call_id": row["id"]}


class ShowsNoArguments(Desk):
    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        return await super().ask(context, replace(call, arguments={}), ask)


class ShowsNoQuestion(Desk):
    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        question = replace(ask.question, text="May it?")
        return await super().ask(context, call, replace(ask, question=question))


class TakesAllAnswers(Desk):
    async def answer(self, *given: Any) -> Any:
        with suppress(Conflict):
            return await super().answer(*given)


class LetsAnybodyAnswer(Desk):
    def _row(self, *given: Any) -> dict[str, Any]:
        return {**super()._row(*given), "may_answer": "*"}


class LetsAgentsAnswer(Desk):
    async def answer(self, principal: Principal, approval_id: str, reply: Reply) -> Any:
        person = replace(principal, kind=PrincipalKind.API_KEY)
        return await super().answer(person, approval_id, reply)


class TakesAnyValues(Desk):
    async def answer(self, *given: Any) -> Any:
        with suppress(InvalidInput):
            return await super().answer(*given)


class LosesValues(Desk):
    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        await super().ask(context, call, ask)
        return {}

    async def standing(self, context: Context, call: ToolUse) -> JsonObject:
        await super().standing(context, call)
        return {}


class AsksOutsideOfTurns(Desk):
    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        if context.agent is None:
            raise Waiting("waiting", "", "")
        return await super().ask(context, call, ask)


class GivesTimeToAll(Desk):
    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        longer = replace(ask, deadline_seconds=max(ask.deadline_seconds, 60.0))
        return await super().ask(context, call, longer)


class TellsOfNothing(Desk):
    async def pending(self, turn_id: str) -> Waiting | None:
        return None


class TellsForEver(Desk):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._told: dict[str, Waiting] = {}

    async def pending(self, turn_id: str) -> Waiting | None:
        waits = await super().pending(turn_id)
        if waits is not None:
            self._told[turn_id] = waits
        return self._told.get(turn_id)


class CancelsNothing(Desk):
    async def cancel(self, agent_id: str, reason: str, session_id: str = "") -> int:
        return 1


class CancelsEverywhere(Desk):
    async def cancel(self, agent_id: str, reason: str, session_id: str = "") -> int:
        return await super().cancel(agent_id, reason)


class KnowsItsOwnAlone(Desk):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._own: set[str] = set()

    async def ask(self, context: Context, call: ToolUse, ask: Ask) -> JsonObject:
        try:
            return await super().ask(context, call, ask)
        except Waiting as waits:
            self._own.add(str(waits.facts["approval_id"]))
            raise

    async def answer(self, principal: Principal, approval_id: str, reply: Reply) -> Any:
        if approval_id not in self._own:
            raise NotFound("approval", approval_id)
        return await super().answer(principal, approval_id, reply)


class TakesAnyId(Desk):
    async def answer(self, *given: Any) -> Any:
        with suppress(NotFound):
            return await super().answer(*given)


C = ApprovalsContract()
BREACHES: tuple[tuple[type[Desk], Any], ...] = (
    (LetsAllPass, C.test_a_turn_goes_on_after_a_yes),
    (TakesNoForYes, C.test_a_no_is_told_to_the_model_with_its_reason),
    (LosesReasons, C.test_a_no_is_told_to_the_model_with_its_reason),
    (WaitsForEver, C.test_no_answer_in_time_is_a_no),
    (AsksAgain, C.test_the_same_question_is_put_once),
    (ShowsNoArguments, C.test_a_yes_is_to_what_was_shown),
    (ShowsNoQuestion, C.test_a_yes_is_to_what_was_shown),
    (TakesAllAnswers, C.test_of_many_answers_one_counts),
    (LetsAnybodyAnswer, C.test_only_who_may_answer_does),
    (LetsAgentsAnswer, C.test_only_who_may_answer_does),
    (TakesAnyValues, C.test_values_are_those_that_were_asked_for),
    (LosesValues, C.test_values_are_those_that_were_asked_for),
    (AsksOutsideOfTurns, C.test_what_cannot_be_asked_is_refused),
    (GivesTimeToAll, C.test_what_cannot_be_asked_is_refused),
    (TellsOfNothing, C.test_what_a_turn_waits_for_is_told_until_it_is_answered),
    (TellsForEver, C.test_what_a_turn_waits_for_is_told_until_it_is_answered),
    (CancelsNothing, C.test_a_cancelled_turn_waits_no_more),
    (CancelsEverywhere, C.test_a_cancelled_turn_waits_no_more),
    (KnowsItsOwnAlone, C.test_a_question_is_answered_in_the_next_daemon),
    (TakesAnyId, C.test_an_answer_to_nothing_is_refused),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test"), BREACHES, ids=name_of)
async def test_a_broken_desk_is_found(
    broken: type[Desk], test: Any, daemons: Daemons, tmp_path: Path
) -> None:
    def open_broken(host: Host) -> Approvals:
        return broken(host)

    backend = ApprovalsBackend("broken", open_broken)
    await stage_finds(test, Stage(daemons, backend, tmp_path / "stage"), answer)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(ApprovalsContract)
