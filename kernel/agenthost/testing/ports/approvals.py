"""What every backend of the port APPROVALS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from agenthost_chat.chat import JsonObject, Role, ToolOutput, ToolUse

from ...context import OPERATOR, Context, Principal, PrincipalKind
from ...errors import Blocked, Conflict, Denied, InvalidInput, NotFound, Waiting
from ...host import Host
from ...plugins.guards import ALLOW, Verdict
from ...plugins.points import ToolCallCase
from ...ports.approvals import Approvals, Ask, Question
from ...ports.records import TurnState
from ...turns.turn import Turn
from ..clock import ManualClock
from ..daemons import RunningAgent, RunningDaemon
from .stage import Stage, StagedContract, begin, ending, known, record_of, soon, until
from .workshop import Called, Workshop, use

ADA = Principal(PrincipalKind.API_KEY, "ada")
BOB = Principal(PrincipalKind.API_KEY, "bob")
NOBODY = "4f9f4a0e-7d0e-4d52-8c5c-3f2f1f3c6f5e"
ADDRESS: Mapping[str, Any] = {
    "type": "object",
    "properties": {"street": {"type": "string", "minLength": 1}},
    "required": ["street"],
}
PAY = Ask(Question("Shall it be paid?"))
AT_ONCE = 6


@dataclass(frozen=True)
class PersonSaid:
    """What somebody answers."""

    who: Principal = ADA
    yes: bool = True
    values: JsonObject = field(default_factory=dict)
    reason: str = ""


AnswerApproval = Callable[[Host, str, PersonSaid], Awaitable[object]]
"""``await answer(host, approval_id, said)`` answers as people do with this backend."""
YES, NO = PersonSaid(), PersonSaid(yes=False, reason="too dear")


class Till:
    """An agent whose payments are asked about, and a turn of it that waits."""

    def __init__(self, stage: Stage, ask: Ask = PAY) -> None:
        self.shop = Workshop()
        self.shop.calls = self._guard
        self.shop.does = self._pay
        self.answers: list[JsonObject] = []
        self.agent: RunningAgent
        self.turn: Turn
        self._stage = stage
        self._ask = ask

    async def open(self, **options: Any) -> RunningDaemon:
        """Start a daemon; its agent is there from the first on."""
        return await self._stage.open(*self.shop.plugins(), **options)

    async def wait(self, **options: Any) -> str:
        """Start the daemon and a turn that comes to wait; give the approval's id."""
        daemon = await self.open(**options)
        self.agent = await daemon.agent(tools=["pay"])
        return await self.wait_again()

    async def wait_again(self, **options: Any) -> str:
        """Start one more turn that comes to wait."""
        self.host.model.calls("pay", amount=5)
        self.turn = begin(self.agent, "pay them", **options)
        end = await ending(self.turn)
        assert isinstance(end, Waiting)
        assert end.facts["turn_id"] == self.turn.id
        assert self.shop.log == []
        return str(end.facts["approval_id"])

    @property
    def host(self) -> RunningDaemon:
        """The daemon that runs."""
        return self._stage.running

    @property
    def approvals(self) -> Approvals:
        """What is tried."""
        return self.host.daemon.approvals

    @property
    def log(self) -> list[str]:
        """Which payments were made."""
        return [each for each in self.shop.log if "before" not in each]

    async def ends(self, state: TurnState = TurnState.DONE) -> None:
        """Wait until the turn's row says so."""
        agent = self.host.known_agent(self.agent.name)

        async def holds() -> bool:
            return (await record_of(agent, self.turn)).state is state

        await until(holds, f"the turn is {state}")

    def told(self) -> ToolOutput:
        """What the model was last told of its call."""
        messages = self.host.model.requests[-1].messages
        tool = next(m for m in reversed(messages) if m.role is Role.TOOL)
        return next(part for part in tool.parts if isinstance(part, ToolOutput))

    async def ask(self, call: ToolUse, ask: Ask = PAY) -> str:
        """Ask about a call of the turn as a toolbox does; give the approval's id."""
        with pytest.raises(Waiting) as told:
            await soon(self.approvals.ask(self.turn.context, call, ask))
        return str(told.value.facts["approval_id"])

    def _guard(self, case: ToolCallCase) -> Verdict:
        return self._ask if case.tool == "pay" else ALLOW

    async def _pay(self, called: Called) -> Any:
        self.answers.append(dict(called.context.answers))
        return await Workshop.answer(called)


class ApprovalsContract(StagedContract):
    """What asks people keeps every promise of the port.

    A subclass overrides the fixtures ``backend`` and ``answer``: how people answer is
    the backend's own affair. What it refuses, it refuses with the errors of the tests.

    Example:
        ::

            class TestDesk(ApprovalsContract):
                @pytest.fixture
                def backend(self) -> ApprovalsBackend:
                    return ApprovalsBackend("embedded", open_approvals)

                @pytest.fixture
                def answer(self) -> AnswerApproval:
                    return answer_at_the_desk
    """

    @pytest.fixture
    def answer(self) -> AnswerApproval:
        """How somebody answers."""
        pytest.fail("override the fixture `answer` with how people answer")

    async def test_a_turn_goes_on_after_a_yes(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """What it waited for runs once; until then its row says that it waits."""
        till = Till(stage)
        approval = await till.wait()
        record = await record_of(till.agent, till.turn)
        assert record.state is TurnState.WAITING
        await soon(answer(till.host.daemon, approval, YES))
        await till.ends()
        assert till.log == ["pay 5"]
        assert till.told().text == "pay 5 done"

    async def test_a_no_is_told_to_the_model_with_its_reason(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """The turn goes on without the call."""
        till = Till(stage)
        approval = await till.wait()
        await soon(answer(till.host.daemon, approval, NO))
        await till.ends()
        assert till.log == []
        assert till.told().is_error
        assert "too dear" in till.told().text

    async def test_no_answer_in_time_is_a_no(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """An answer that comes later changes nothing, and the turn goes on."""
        clock = ManualClock()
        till = Till(stage, Ask(PAY.question, deadline_seconds=60))
        approval = await till.wait(clock=clock)
        await clock.advance(61)
        with pytest.raises(Blocked):
            await soon(
                till.approvals.ask(
                    till.turn.context, use("pay", amount=5), Ask(PAY.question, 60)
                )
            )
        with pytest.raises(Conflict):
            await soon(answer(till.host.daemon, approval, YES))
        await till.ends()
        assert till.log == []

    async def test_the_same_question_is_put_once(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """However often it is asked, and by how many at once."""
        del answer
        till = Till(stage)
        approval = await till.wait()
        call = use("pay", amount=5)
        asked = await asyncio.gather(*(till.ask(call) for _ in range(AT_ONCE)))
        assert {*asked, await till.ask(call)} == {approval}

    async def test_a_yes_is_to_what_was_shown(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """Other arguments, and another question, are asked about for themselves."""
        till = Till(stage)
        await till.wait()
        call = use("pay", 8, amount=8)
        approval = await till.ask(call)
        more = await till.ask(use("pay", 8, amount=8_000))
        other = await till.ask(call, Ask(Question("Are you sure?")))
        assert len({approval, more, other}) == 3
        await soon(answer(till.host.daemon, approval, YES))
        await soon(till.approvals.ask(till.turn.context, call, PAY))
        assert await till.ask(use("pay", 8, amount=8_000)) == more

    async def test_of_many_answers_one_counts(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """The others are told that they change nothing: Conflict."""
        till = Till(stage)
        approval = await till.wait()
        daemon = till.host.daemon
        given = [answer(daemon, approval, (YES, NO)[n % 2]) for n in range(AT_ONCE)]
        told = await soon(asyncio.gather(*given, return_exceptions=True))
        first = [number for number, each in enumerate(told) if each is None]
        assert len(first) == 1
        assert sum(isinstance(each, Conflict) for each in told) == len(given) - 1
        await till.ends()
        assert till.log == (["pay 5"] if first[0] % 2 == 0 else [])

    async def test_only_who_may_answer_does(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """Who was named; never an agent, nor somebody whom nobody knows."""
        till = Till(stage, Ask(PAY.question, may_answer="*:ada"))
        approval = await till.wait()
        kinds = PrincipalKind.AGENT, PrincipalKind.ANONYMOUS
        for who in (BOB, *(Principal(kind, "ada") for kind in kinds)):
            with pytest.raises(Denied):
                await soon(answer(till.host.daemon, approval, PersonSaid(who)))
        assert till.log == []
        await soon(answer(till.host.daemon, approval, PersonSaid(ADA)))
        await till.ends()
        assert till.log == ["pay 5"]

    async def test_values_are_those_that_were_asked_for(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """Others are refused, and the question stays open; the tool finds them."""
        till = Till(stage, Ask(Question("Where to?", schema=ADDRESS)))
        approval = await till.wait()
        wrong: tuple[JsonObject, ...] = {}, {"street": ""}, {"street": "x", "to": "y"}
        for values in wrong:
            with pytest.raises(InvalidInput):
                await soon(
                    answer(till.host.daemon, approval, PersonSaid(values=values))
                )
        good = {"street": "Main"}
        await soon(answer(till.host.daemon, approval, PersonSaid(values=good)))
        await till.ends()
        assert till.answers == [good]

    async def test_what_cannot_be_asked_is_refused(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """Outside of a turn, and with no time to answer in."""
        del answer
        till = Till(stage)
        await till.wait()
        outside = Context(OPERATOR)
        for context, seconds in ((outside, 60.0), (till.turn.context, 0.0)):
            ask = Ask(PAY.question, seconds)
            with pytest.raises(Blocked):
                await soon(till.approvals.ask(context, use("pay", 9), ask))

    async def test_what_a_turn_waits_for_is_told_until_it_is_answered(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """None for a turn that waits for nothing."""
        till = Till(stage)
        approval = await till.wait()
        waits = await soon(till.approvals.pending(till.turn.id))
        assert waits is not None
        assert waits.facts == {"turn_id": till.turn.id, "approval_id": approval}
        assert await soon(till.approvals.pending(NOBODY)) is None
        await soon(answer(till.host.daemon, approval, NO))
        assert await soon(till.approvals.pending(till.turn.id)) is None

    async def test_a_cancelled_turn_waits_no_more(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """In the session that was named alone; its row says cancelled."""
        till = Till(stage)
        approval = await till.wait()
        daemon, agent = till.host.daemon, till.agent
        other = await daemon.sessions.open(agent.id, "contract:peer")
        first, own = till.turn, known(agent).session_id
        await till.wait_again(session_id=other.id)
        assert await soon(till.approvals.cancel(agent.id, "a test", own)) == 1
        assert (await record_of(agent, first)).state is TurnState.CANCELLED
        assert (await record_of(agent, till.turn)).state is TurnState.WAITING
        with pytest.raises(Conflict):
            await soon(answer(daemon, approval, YES))
        assert await soon(till.approvals.cancel(agent.id, "a test")) == 1
        assert await soon(till.approvals.cancel(agent.id, "a test")) == 0
        assert (await record_of(agent, till.turn)).state is TurnState.CANCELLED
        assert till.log == []

    async def test_a_question_is_answered_in_the_next_daemon(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """The turn goes on in its own place, once."""
        till = Till(stage)
        approval = await till.wait()
        daemon = await till.open()
        assert await soon(till.approvals.pending(till.turn.id)) is not None
        assert till.log == []
        await soon(answer(daemon.daemon, approval, YES))
        await till.ends()
        assert till.log == ["pay 5"]
        await till.open()
        assert till.log == ["pay 5"]

    async def test_an_answer_to_nothing_is_refused(
        self, stage: Stage, answer: AnswerApproval
    ) -> None:
        """NotFound, and what waits goes on waiting."""
        till = Till(stage)
        await till.wait()
        with pytest.raises(NotFound):
            await soon(answer(till.host.daemon, NOBODY, YES))
        assert await soon(till.approvals.pending(till.turn.id)) is not None
