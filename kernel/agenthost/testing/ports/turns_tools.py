"""What backends of the port TURNS promise of tools that their callers have."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from agenthost_chat.chat import (
    Finish,
    Message,
    Role,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)
from pydantic import BaseModel

from ...context import OPERATOR, Context
from ...errors import InvalidInput, LoopDetected
from ...plugins.guards import Deny, Replace
from ...plugins.marks import hookimpl
from ...plugins.points import Guard
from ...plugins.specs import Effect, ToolResult, ToolSpec
from ...ports.records import TurnState
from ...turns.turn import Turn, TurnOptions, user_message
from ..daemons import RunningAgent, RunningDaemon
from .stage import (
    Stage,
    StagedContract,
    begin,
    ending,
    guarding,
    known,
    record_of,
    soon,
)

TURN = "5f0c37ac-6d2c-4a5e-9a0b-35a9b2c7c3d4"
LOOK = ToolDefinition("look", "To look.", {"type": "object", "properties": {}})
BOTH: tuple[tuple[str, dict[str, Any]], ...] = (("count", {}), ("look", {"at": "it"}))
HELLO = user_message("hello")
MANY_ANSWERS = 8


class Count(BaseModel):
    """Arguments of ``count``: none."""


def counting(counted: list[Context]) -> SimpleNamespace:
    """Make a plugin with a tool of the agent's own."""

    async def count(context: Context, _: Count) -> ToolResult:
        counted.append(context)
        return ToolResult("counted")

    @hookimpl
    def register_tool() -> Iterable[ToolSpec]:
        """Offer it."""
        return [ToolSpec("count", "To count.", Count, Effect.WRITE, count)]

    return SimpleNamespace(__name__="counting", register_tool=register_tool)


async def asker(daemon: RunningDaemon) -> RunningAgent:
    """Give an agent that has ``count``, in a daemon whose model calls both."""
    daemon.model.calls_all(*BOTH)
    return await daemon.agent("ada", tools=["count"])


class CallersTools(StagedContract):
    """What an engine does with the tools of whoever starts a turn."""

    async def test_calls_of_the_callers_tools_are_left_to_it(
        self, stage: Stage
    ) -> None:
        """The agent's own of the same answer run first; the row says that it ended."""
        counted: list[Context] = []
        daemon = await stage.open(counting(counted))
        agent = await asker(daemon)
        turn = begin(agent, "hello", history=(), tools=(LOOK,))
        result = await soon(turn.result())
        assert [(use.name, use.arguments) for use in result.calls] == [BOTH[1]]
        assert (result.finish, len(counted)) == (Finish.TOOL_USE, 1)
        names = [tool.name for tool in daemon.model.requests[0].tools]
        assert names == ["count", "look"]
        said = await daemon.daemon.journal.said(turn.id, turn.id)
        assert [each.message.role for each in said] == [
            Role.USER,
            Role.ASSISTANT,
            Role.TOOL,
        ]
        assert (await record_of(agent, turn)).owner == "operator:operator"

    async def test_a_turn_may_answer_calls_of_its_history(self, stage: Stage) -> None:
        """What the message leaves open is told as unknown."""
        daemon = await stage.open()
        agent = await daemon.agent("ada")
        calls = (ToolUse("a", "look", {}), ToolUse("b", "look", {}))
        history = (HELLO, Message(Role.ASSISTANT, calls))
        message = Message(Role.TOOL, (ToolOutput("a", "look", "seen"),))
        turn = start(agent, message, history=history, tools=(LOOK,))
        await soon(turn.result())
        *before, answers = daemon.model.requests[0].messages
        assert tuple(before) == history
        assert [getattr(p, "id", "") for p in answers.parts] == ["a", "b"]
        assert getattr(answers.parts[1], "is_error", False)

    async def test_a_turn_of_which_guards_say_it_loops_ends(self, stage: Stage) -> None:
        """Not at once, for the model may mend its way; what they say is in its row."""
        loops = guarding("loops", Guard.TOOL_CALL, lambda _: Deny("oh", LoopDetected))
        daemon = await stage.open(counting([]), loops)
        agent = await daemon.agent("ada", tools=["count"])
        for _ in range(MANY_ANSWERS):
            daemon.model.calls("count")
        turn = begin(agent, "hello")
        assert isinstance(await ending(turn), LoopDetected)
        assert 1 < len(daemon.model.requests) < MANY_ANSWERS
        record = await record_of(agent, turn)
        assert (record.state, record.error and record.error.code) == (
            TurnState.FAILED,
            LoopDetected.code,
        )

    async def test_guards_are_asked_of_what_was_said_before(self, stage: Stage) -> None:
        """A model reads what they leave of it; the session keeps all of it."""
        forget = guarding("forget", Guard.HISTORY, lambda c: Replace(c.messages[:1]))
        daemon = await stage.open()
        agent = await daemon.agent("ada")
        await agent.ask("one")
        daemon = await stage.open(forget)
        agent = daemon.known_agent("ada")
        await agent.ask("two")
        said = [message.text for message in daemon.model.requests[0].messages]
        assert said == ["one", "two"]
        assert len((await agent.session())["messages"]) == 2 * len(said)

    async def test_calls_that_were_left_are_told_again(self, stage: Stage) -> None:
        """When the same is asked again, in the next daemon too; nothing runs twice."""
        counted: list[Context] = []
        daemon = await stage.open(counting(counted))
        agent = await asker(daemon)
        asked: dict[str, Any] = {"turn_id": TURN, "digest": "a"}
        asked |= {"history": (), "tools": (LOOK,)}
        first = await soon(begin(agent, "hello", **asked).result())
        daemon = await stage.open(counting(counted))
        agent = daemon.known_agent("ada")
        again = await soon(begin(agent, "hello", **asked).result())
        assert first.calls == again.calls != ()
        assert len(counted) == 1

    async def test_nothing_is_kept_of_a_turn_without_left_calls(
        self, stage: Stage
    ) -> None:
        """It was stateless, and ended as such."""
        daemon = await stage.open()
        agent = await daemon.agent("ada")
        turn = begin(agent, "hello", history=(), tools=(LOOK,))
        await soon(turn.result())
        assert await daemon.daemon.journal.find(turn.id) is None

    async def test_a_tool_of_a_name_that_is_taken_is_refused(
        self, stage: Stage
    ) -> None:
        """InvalidInput, and the model is not asked."""
        daemon = await stage.open(counting([]))
        agent = await daemon.agent("ada", tools=["count"])
        taken = ToolDefinition("count", "", {})
        for tools in ((taken,), (LOOK, LOOK)):
            end = await ending(begin(agent, "hello", history=(), tools=tools))
            assert isinstance(end, InvalidInput)
        assert daemon.model.requests == []


def start(agent: RunningAgent, message: Message, **options: Any) -> Turn:
    """Start a turn of a message that is not the user's words."""
    turns = agent.host.daemon.turns
    return turns.start(Context(OPERATOR), known(agent), message, TurnOptions(**options))
