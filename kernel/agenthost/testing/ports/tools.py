"""What every backend of the port TOOLS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from agenthost_chat.chat import JsonObject, ToolUse

from ...context import Context
from ...errors import InvalidInput, LoopDetected, OutcomeUnknown
from ...plugins.guards import ALLOW, Deny, Replace, Verdict
from ...plugins.points import ToolCallCase, ToolResultCase
from ...plugins.specs import ToolResult
from ...ports.approvals import Ask, Question
from ...ports.records import Outcome
from ..daemons import RunningAgent, RunningDaemon
from .stage import Stage, StagedContract, a_while, known, soon
from .workshop import LABEL, NAMES, Called, Workshop, use

CANARY = "sk-canary"
VERY_MANY = 300
SHORT = 0.05


def texts(outcomes: Sequence[Outcome]) -> list[str]:
    """Give the words of outcomes."""
    return [outcome.output.text for outcome in outcomes]


def failed(outcomes: Sequence[Outcome]) -> list[bool]:
    """Tell which outcomes are errors."""
    return [outcome.output.is_error for outcome in outcomes]


def shown(agent: RunningAgent) -> list[str]:
    """Name the tools that an agent's model is shown."""
    now, toolbox = known(agent), agent.host.daemon.toolbox
    return [tool.name for tool in toolbox.rights_of(now.id, now.manifest).tools]


class ToolsContract(StagedContract):
    """A toolbox keeps every promise of the port.

    A subclass overrides the fixture ``backend``, and ``plugins`` where a service has to
    start what it opens.

    Example:
        ::

            class TestGuarded(ToolsContract):
                @pytest.fixture
                def backend(self) -> ToolsBackend:
                    return ToolsBackend("guarded", open_toolbox)
    """

    async def test_a_call_runs_its_tool_for_its_agent(self, stage: Stage) -> None:
        """With its arguments, by any of its names, in its turn."""
        shop, daemon, context = await opened(stage)
        calls = use("put", amount=3), use("hold", 2, amount=4)
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert texts(outcomes) == ["put 3 done", "keep 4 done"]
        assert [each.output.id for each in outcomes] == ["call_1", "call_2"]
        assert not any(failed(outcomes))
        assert all(each.known for each in outcomes)
        inside = shop.contexts[0]
        assert (inside.agent, inside.turn_id) == (context.agent, context.turn_id)
        assert inside.host is daemon.daemon

    async def test_the_tools_are_there_by_every_name(self, stage: Stage) -> None:
        """With their effects, and as a model sees them."""
        _, daemon, _ = await opened(stage)
        tools = daemon.daemon.toolbox.tools
        assert set(NAMES) <= set(tools)
        assert tools["hold"].definition.name == "keep"
        effects = [tools[name].effect for name in ("look", "put", "pay")]
        assert effects == ["read", "write", "external"]
        assert "amount" in str(tools["put"].definition.parameters)

    @pytest.mark.parametrize(
        "wrong",
        [
            use("put", amount="many"),
            use("put", sum=1),
            replace(use("put"), malformed="it is no JSON"),
        ],
        ids=["type", "name", "malformed"],
    )
    async def test_wrong_arguments_are_told_and_run_nothing(
        self, stage: Stage, wrong: ToolUse
    ) -> None:
        """The journal hears nothing of the call, and the next one runs."""
        shop, daemon, context = await opened(stage)
        outcomes = await soon(shop.run(daemon, context, wrong, use("look", 2)))
        assert failed(outcomes) == [True, False]
        assert shop.log == ["look 0"]
        assert outcomes[0].known

    async def test_a_tool_that_is_not_there_is_told(self, stage: Stage) -> None:
        """By its name; the next call runs."""
        shop, daemon, context = await opened(stage)
        outcomes = await soon(shop.run(daemon, context, use("fly"), use("look", 2)))
        assert failed(outcomes) == [True, False]
        assert "fly" in outcomes[0].output.text

    async def test_an_agent_calls_what_its_manifest_grants(self, stage: Stage) -> None:
        """Nothing else, whatever its model asks for."""
        shop, daemon, context = await opened(stage, "look", "k*")
        calls = use("look"), use("keep", 2), use("put", 3), use("peek", 4)
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert failed(outcomes) == [False, False, True, True]
        assert [each for each in shop.log if "before" not in each] == [
            "look 0",
            "keep 0",
        ]

    async def test_a_model_is_shown_what_its_agent_may_call(self, stage: Stage) -> None:
        """Each tool once, by name, so that a prompt stays the same; none for none."""
        _, daemon, _ = await opened(stage)
        every, some = daemon.known_agent("tester"), await daemon.agent("some", ["p*"])
        assert [name for name in shown(every) if name in NAMES] == list(NAMES)
        assert shown(every) == sorted(shown(every))
        assert [name for name in shown(some) if name in NAMES] == ["pay", "peek", "put"]
        assert shown(await daemon.agent("nobody", [])) == []
        daemon.daemon.toolbox.forget(some.id)
        assert [name for name in shown(some) if name in NAMES] == ["pay", "peek", "put"]

    async def test_neighbouring_reads_run_together(self, stage: Stage) -> None:
        """What they say comes in the order of the calls all the same."""
        shop, daemon, context = await opened(stage)
        second = stage.pause()

        async def meet(called: Called) -> ToolResult:
            if called.name == "look":
                async with asyncio.timeout(5):
                    await second.reached.wait()
                return ToolResult("first")
            second.go_on()
            await second.wait()
            return ToolResult("second")

        shop.does = meet
        outcomes = await soon(shop.run(daemon, context, use("look"), use("peek", 2)))
        assert texts(outcomes) == ["first", "second"]

    async def test_effects_run_one_after_another(self, stage: Stage) -> None:
        """None begins before what stands before it has ended, nor does a read."""
        shop, daemon, context = await opened(stage)

        async def slowly(called: Called) -> ToolResult:
            await a_while(daemon)
            shop.log.append(f"{called.name} ends")
            return ToolResult("done")

        shop.does = slowly
        names = "put", "look", "pay", "keep"
        calls = (use(name, number) for number, name in enumerate(names))
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert not any(failed(outcomes))
        log = [each for each in shop.log if "before" not in each]
        assert log == [each for n in names for each in (f"{n} 0", f"{n} ends")]

    async def test_an_effect_is_journalled_before_it_begins(self, stage: Stage) -> None:
        """A read is not."""
        shop, daemon, context = await opened(stage)
        await soon(shop.run(daemon, context, use("look"), use("put", 2), use("pay", 3)))
        assert shop.log == ["look 0", "before put", "put 0", "before pay", "pay 0"]

    async def test_an_effect_that_is_not_journalled_does_not_run(
        self, stage: Stage
    ) -> None:
        """It has an outcome all the same: that is known, and an error."""
        shop, daemon, context = await opened(stage)

        shop.full = True
        (outcome,) = await soon(shop.run(daemon, context, use("put")))
        assert outcome.output.is_error
        assert outcome.known
        assert shop.log == []

    async def test_guards_are_asked_before_a_call(self, stage: Stage) -> None:
        """They are shown all of it, and what they refuse is not begun."""
        shop, daemon, context = await opened(stage)
        cases: list[ToolCallCase] = []

        def refuse(case: ToolCallCase) -> Verdict:
            cases.append(case)
            return Deny("not on a Sunday") if case.tool == "pay" else ALLOW

        shop.calls = refuse
        calls = use("pay", amount=7), use("look", 2)
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert failed(outcomes) == [True, False]
        assert "not on a Sunday" in outcomes[0].output.text
        assert shop.log == ["look 0"]
        assert (cases[0].effect, cases[0].arguments) == ("external", {"amount": 7})
        assert cases[0].context.agent == context.agent

    async def test_guards_read_what_the_model_will(self, stage: Stage) -> None:
        """Results and errors; what they refuse or replace is not read."""
        shop, daemon, context = await opened(stage)

        async def tell(called: Called) -> ToolResult:
            if called.name == "put":
                raise InvalidInput("amount", CANARY)
            return ToolResult(CANARY)

        asked: list[JsonObject] = []

        def read(case: ToolResultCase) -> Verdict:
            asked.append(case.arguments)
            if case.tool == "look":
                return Deny("it is secret")
            return Replace(case.text.replace(CANARY, "***"))

        shop.does, shop.results = tell, read
        calls = use("put"), use("look", 2), use("peek", 3, amount=4)
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert failed(outcomes) == [True, True, False]
        assert CANARY not in " ".join(texts(outcomes))
        assert "***" in outcomes[0].output.text
        assert "***" in outcomes[2].output.text
        assert asked == [{}, {}, {"amount": 4}]

    async def test_an_effect_whose_end_nobody_saw_is_unknown(
        self, stage: Stage
    ) -> None:
        """It may have happened, so the model is told; a read has failed."""
        shop, daemon, context = await opened(stage, seconds=SHORT)

        async def vanish(called: Called) -> ToolResult:
            if called.amount:
                raise OutcomeUnknown("the line was cut")
            await asyncio.Event().wait()
            return ToolResult("never")

        shop.does = vanish
        calls = [use("put"), use("pay", 2, amount=1), use("look", 3)]
        each = [await soon(shop.run(daemon, context, call)) for call in calls]
        outcomes = [outcome for one in each for outcome in one]
        assert failed(outcomes) == [True, True, True]
        assert [outcome.known for outcome in outcomes] == [False, False, True]

    async def test_a_tool_that_fails_ends_its_own_call(self, stage: Stage) -> None:
        """Its own errors are told; what else it raises is not shown to the model."""
        shop, daemon, context = await opened(stage)
        errors = [ValueError(CANARY), SystemExit(CANARY), InvalidInput("", "too dear")]

        async def fail(called: Called) -> ToolResult:
            if called.amount < len(errors):
                raise errors[called.amount]
            return ToolResult("fine")

        shop.does = fail
        calls = (use("put", n, amount=n) for n in range(len(errors) + 1))
        each = [await soon(shop.run(daemon, context, call)) for call in calls]
        outcomes = [outcome for one in each for outcome in one]
        assert failed(outcomes) == [True, True, True, False]
        assert CANARY not in " ".join(texts(outcomes))
        assert "too dear" in outcomes[2].output.text

    async def test_nothing_is_changed_behind_a_call_that_failed(
        self, stage: Stage
    ) -> None:
        """Reads run, effects do not: the model had not read of the failure."""
        shop, daemon, context = await opened(stage)

        async def fail(called: Called) -> ToolResult:
            return ToolResult("no luck", is_error=called.name == "keep")

        shop.does = fail
        calls = use("put"), use("keep", 2), use("look", 3), use("pay", 4)
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert failed(outcomes) == [False, True, False, True]
        assert all(each.known for each in outcomes)
        assert shop.log[-1] == "look 0"
        assert not any("pay" in each for each in shop.log)
        (again,) = await soon(shop.run(daemon, context, use("pay", 5)))
        assert not again.output.is_error

    async def test_a_guard_may_end_the_turn(self, stage: Stage) -> None:
        """The outcome says so: of a call, and of what one says."""
        shop, daemon, context = await opened(stage)
        shop.calls = lambda case: (
            Deny("round and round", LoopDetected) if case.tool == "pay" else ALLOW
        )
        shop.results = lambda case: (
            Deny("round and round", LoopDetected) if case.tool == "look" else ALLOW
        )
        calls = use("peek"), use("look", 2), use("pay", 3)
        each = [await soon(shop.run(daemon, context, call)) for call in calls]
        outcomes = [outcome for one in each for outcome in one]
        assert failed(outcomes) == [False, True, True]
        assert [each.ends is not None for each in outcomes] == [False, True, True]
        assert "round" in outcomes[2].output.text

    async def test_labels_are_carried_on(self, stage: Stage) -> None:
        """Those of the turn, the tool and the result; on errors too."""
        shop, daemon, context = await opened(stage)
        context = context.labelled(frozenset({"known"}))

        async def label(called: Called) -> ToolResult:
            if called.amount:
                raise InvalidInput("", "no")
            return ToolResult("yes", labels=frozenset({"read"}))

        shop.does = label
        calls = use("peek"), use("peek", 2, amount=1), use("look", 3), use("fly", 4)
        outcomes = await soon(shop.run(daemon, context, *calls))
        wanted = {"known", LABEL, "read"}, {"known", LABEL}, {"known", "read"}
        assert [set(each.labels) for each in outcomes] == [*wanted, {"known"}]

    async def test_values_are_held_against_a_schema(self, stage: Stage) -> None:
        """What does not fit is told with its place; what is no schema is refused."""
        checker = (await stage.open()).daemon.toolbox.checker
        city = {"type": "object", "properties": {"city": {"type": "string"}}}
        check = await soon(checker(city))
        assert check({"city": "Lisbon"}) == ""
        assert "city" in check({"city": 1})
        with pytest.raises(InvalidInput):
            await soon(checker({"type": "nothing"}))

    async def test_only_what_may_run_twice_is_repeatable(self, stage: Stage) -> None:
        """Reads and idempotent tools, by any name."""
        _, daemon, _ = await opened(stage)
        may = daemon.daemon.toolbox.repeatable
        assert {name for name in (*NAMES, "hold") if may(name)} == {
            "hold",
            "keep",
            "look",
            "peek",
        }

    async def test_progress_is_told_of_its_call(self, stage: Stage) -> None:
        """While it runs; what comes after its end is not."""
        shop, daemon, context = await opened(stage)

        async def report(called: Called) -> ToolResult:
            called.context.progress(1, 2, "half")
            return ToolResult("done")

        shop.does = report
        await soon(shop.run(daemon, context, use("put", 7)))
        shop.contexts[0].progress(2, 2, "late")
        assert len(shop.told) == 1
        told = shop.told[0]
        assert (told.id, told.tool, told.done, told.total) == ("call_7", "put", 1, 2)
        assert told.text == "half"

    async def test_nothing_begins_behind_a_call_that_waits_for_a_person(
        self, stage: Stage
    ) -> None:
        """All of them say that they wait, and none is known."""
        shop, daemon, context = await opened(stage)
        asked = Ask(Question("Shall it be paid?"))
        shop.calls = lambda case: asked if case.tool == "pay" else ALLOW
        calls = use("look"), use("pay", 2), use("put", 3), use("peek", 4)
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert shop.log == ["look 0"]
        assert [outcome.waits is not None for outcome in outcomes] == [
            False,
            True,
            True,
            True,
        ]
        assert [outcome.known for outcome in outcomes] == [True, False, False, False]

    async def test_every_call_has_one_outcome(self, stage: Stage) -> None:
        """In their order, however many there are; nothing runs twice."""
        shop, daemon, context = await opened(stage)
        calls = [use("look", number, amount=number) for number in range(VERY_MANY)]
        outcomes = await soon(shop.run(daemon, context, *calls))
        assert [each.output.id for each in outcomes] == [call.id for call in calls]
        assert sum(not each for each in failed(outcomes)) == len(shop.log)
        assert len(set(shop.log)) == len(shop.log)

    async def test_a_step_that_is_stopped_stops_its_tools(self, stage: Stage) -> None:
        """They have ended when the stop has, and nothing more begins."""
        shop, daemon, context = await opened(stage)
        there = stage.pause()

        async def stay(called: Called) -> ToolResult:
            try:
                await there.wait()
            finally:
                shop.log.append(f"{called.name} ends")
            return ToolResult("done")

        shop.does = stay
        calls = use("put"), use("pay", 2)
        step = asyncio.create_task(shop.run(daemon, context, *calls))
        await soon(there.reached.wait())
        step.cancel()
        await soon(asyncio.wait({step}))
        assert step.cancelled()
        assert shop.log == ["before put", "put 0", "put ends"]


async def opened(
    stage: Stage, *tools: str, seconds: float = 20.0
) -> tuple[Workshop, RunningDaemon, Context]:
    """Open a daemon with tools to try, and give what a turn of an agent hands them."""
    shop = Workshop()
    daemon = await stage.open(*shop.plugins(seconds))
    agent = await daemon.agent(tools=tools or ("*",))
    return shop, daemon, agent.context()
