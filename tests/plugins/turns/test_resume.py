"""A turn that was cut off goes on in its own place, or is told as it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from agenthost import (
    Conflict,
    Context,
    Done,
    Effect,
    Failed,
    Interrupted,
    Mismatch,
    NotFound,
    OutcomeUnknown,
    ProviderError,
    ProviderFault,
    TextDelta,
    ToolEnd,
    ToolOutput,
    ToolResult,
    ToolSpec,
    ToolStart,
    Turn,
    TurnOptions,
    Watcher,
    hookimpl,
    user_message,
)
from agenthost.context import OPERATOR
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon
from pydantic import BaseModel

KEY = "3f0c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b11"


class Nothing(BaseModel):
    """No arguments."""


class Effects:
    """A plugin with tools whose runs are counted."""

    __name__ = "effects"

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.hang = asyncio.Event()
        self.hangs: set[str] = set()
        self.raises: dict[str, BaseException] = {}
        self.timeout = 20.0

    def tool(self, name: str, *, idempotent: bool = False) -> ToolSpec:
        async def call(context: Context, _: Nothing) -> ToolResult:
            self.runs.append(name)
            if name in self.raises:
                raise self.raises[name]
            if name in self.hangs:
                self.hang.set()
                await asyncio.Event().wait()
            return ToolResult(f"{name} done")

        kind = Effect.EXTERNAL
        return ToolSpec(
            name, "Count.", Nothing, kind, call, idempotent, timeout=self.timeout
        )

    @property
    def plugin(self) -> Any:
        @hookimpl
        def register_tool() -> Iterable[ToolSpec]:
            """Offer three effects."""
            yield self.tool("pay")
            yield self.tool("ship")
            yield self.tool("put", idempotent=True)

        return SimpleNamespace(__name__="effects", register_tool=register_tool)


TOOLS = ("pay", "ship", "put", "calculate")


def begin(
    agent: RunningAgent, text: str, turn_id: str = KEY, digest: str | None = None
) -> Turn:
    host = agent.host.daemon
    options = TurnOptions(turn_id=turn_id, digest=digest)
    context = Context(OPERATOR)
    known = host.agents.get(agent.id)
    return host.turns.start(context, known, user_message(text), options)


async def seen(watcher: Watcher) -> list[Any]:
    return [event async for event in watcher.events()]


async def asked(daemon: RunningDaemon) -> list[str]:
    return [message.text for message in daemon.model.requests[-1].messages]


async def test_a_failed_turn_is_retried_in_its_own_place(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    daemon.model.fails(ProviderFault.SERVER, "half")
    turn = begin(agent, "first?")
    turn.watch()
    with pytest.raises(ProviderError):
        await turn.result()
    assert await agent.ask("second?") == "You said: second?"
    assert (await begin(agent, "first?").result()).text == "You said: first?"
    assert await asked(daemon) == ["first?"]
    said = (await agent.session())["messages"]
    assert [m["content"] for m in said] == [
        "first?",
        "You said: first?",
        "second?",
        "You said: second?",
    ]
    assert {m["status"] for m in said} == {"complete"}
    await agent.ask("third?")
    assert await asked(daemon) == [m["content"] for m in said] + ["third?"]


async def test_an_interrupted_turn_is_resumed_after_a_restart(
    daemons: Daemons, tmp_path: Any
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home)
    agent = await first.agent()
    pause = Pause()
    first.model.says("half", pause)
    turn = begin(agent, "first?")
    await pause.reached.wait()
    await first.daemon.turns.drain(0)
    with pytest.raises(Interrupted) as cut:
        await turn.result()
    assert cut.value.facts == {"turn_id": KEY}
    await first.daemon.stop()
    second = await daemons.start(home=home)
    agent = second.known_agent("tester")
    question, words = (await agent.session())["messages"]
    assert (question["status"], words["status"]) == ("interrupted", "interrupted")
    await agent.ask("second?")
    path = f"/api/agents/{agent.id}/turns/{KEY}/resume"
    answer = await second.http.post(path)
    assert answer.json()["response"] == "You said: first?"
    said = (await agent.session())["messages"]
    assert [m["content"] for m in said][:2] == ["first?", "You said: first?"]


async def test_a_turn_whose_question_was_summarised_is_refused_by_name(
    daemons: Daemons,
) -> None:
    config = "[compaction]\nthreshold_messages = 4\nkeep_recent = 2\n"
    daemon = await daemons.start(config=config)
    agent = await daemon.agent()
    daemon.model.fails(ProviderFault.SERVER, "half")
    turn = begin(agent, "first?")
    turn.watch()
    with pytest.raises(ProviderError):
        await turn.result()
    for number in range(3):
        await agent.ask(f"message {number}")
    await daemon.http.post(f"/api/agents/{agent.id}/session/compact")
    with pytest.raises(Conflict, match="no longer in the session"):
        await begin(agent, "first?").result()


async def test_an_id_given_for_something_else_is_refused(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    pause = Pause()
    daemon.model.says(pause, "done")
    turn = begin(agent, "one", digest="1")
    await pause.reached.wait()
    with pytest.raises(Mismatch):
        begin(agent, "two", digest="2")
    pause.go_on()
    await turn.result()
    with pytest.raises(Mismatch):
        await begin(agent, "two", digest="2").result()
    assert (await begin(agent, "one", digest="1").result()).text == "done"


async def test_an_ended_turn_is_told_again_with_its_tools(
    daemon: RunningDaemon,
) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is ", "42.")
    agent = await daemon.agent()
    await begin(agent, "6*7?").result()
    known = daemon.daemon.agents.get(agent.id)
    events = await seen(await daemon.daemon.turns.attach(known, KEY))
    kinds = [type(event) for event in events]
    assert kinds == [ToolStart, ToolEnd, TextDelta, Done]
    assert events[2] == TextDelta("It is 42.", 9)
    late = await seen(await daemon.daemon.turns.attach(known, KEY, 6))
    assert late[0] == TextDelta("42.", 9)
    other = daemon.daemon.agents.get((await daemon.agent("other")).id)
    with pytest.raises(NotFound):
        await daemon.daemon.turns.attach(other, KEY)


async def test_a_failed_turn_is_told_again_as_it_failed(daemon: RunningDaemon) -> None:
    daemon.model.fails(ProviderFault.SERVER, "half")
    agent = await daemon.agent()
    turn = begin(agent, "hello")
    turn.watch()
    with pytest.raises(ProviderError):
        await turn.result()
    known = daemon.daemon.agents.get(agent.id)
    words, end = await seen(await daemon.daemon.turns.attach(known, KEY))
    assert words == TextDelta("half", 4)
    assert isinstance(end, Failed)
    assert end.error.code == "server_error"


@pytest.fixture
def effects() -> Effects:
    return Effects()


async def cut(first: RunningDaemon, effects: Effects, text: str) -> None:
    """Start a turn, and end the daemon when an effect hangs."""
    agent = await first.agent(tools=TOOLS)
    turn = begin(agent, text)
    await effects.hang.wait()
    await first.daemon.turns.drain(0)
    with pytest.raises(Interrupted):
        await turn.result()
    await first.daemon.stop()


async def outputs(daemon: RunningDaemon) -> list[str]:
    last = daemon.model.requests[-1].messages[-1]
    return [part.text for part in last.parts if isinstance(part, ToolOutput)]


async def test_a_resumed_turn_runs_what_was_only_intended(
    daemons: Daemons, tmp_path: Any, effects: Effects
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home, plugins=[effects.plugin])
    effects.hangs = {"ship"}
    first.model.calls_all(("pay", {}), ("ship", {}), ("put", {}))
    await cut(first, effects, "go")
    assert effects.runs == ["pay", "ship"]
    effects.hangs = set()
    second = await daemons.start(home=home, plugins=[effects.plugin])
    await begin(second.known_agent("tester"), "go").result()
    assert effects.runs == ["pay", "ship", "put"]
    paid, shipped, put = await outputs(second)
    assert (paid, put) == ("pay done", "put done")
    assert "may or may not" in shipped


async def test_a_resumed_turn_repeats_what_may_be_repeated(
    daemons: Daemons, tmp_path: Any, effects: Effects
) -> None:
    home = tmp_path / "home"
    first = await daemons.start(home=home, plugins=[effects.plugin])
    effects.hangs = {"put"}
    first.model.calls_all(("put", {}))
    await cut(first, effects, "go")
    effects.hangs = set()
    second = await daemons.start(home=home, plugins=[effects.plugin])
    await begin(second.known_agent("tester"), "go").result()
    assert effects.runs == ["put", "put"]
    assert await outputs(second) == ["put done"]


@pytest.mark.parametrize(
    ("problem", "words"),
    [(None, "too long"), (OutcomeUnknown("the line broke"), "the line broke")],
)
async def test_an_effect_whose_end_nobody_saw_is_told_as_unknown(
    daemons: Daemons, effects: Effects, problem: BaseException | None, words: str
) -> None:
    effects.timeout = 0.2
    daemon = await daemons.start(plugins=[effects.plugin])
    agent = await daemon.agent(tools=TOOLS)
    effects.hangs = {"pay"}
    effects.raises = {"pay": problem} if problem else {}
    daemon.model.calls("pay")
    await begin(agent, "go").result()
    (text,) = await outputs(daemon)
    assert words in text
    assert "may or may not have taken effect" in text
    calls = await daemon.daemon.journal.calls(KEY)
    assert [state.value for state, _ in calls.values()] == ["unknown"]


async def test_calls_with_one_id_are_told_apart(
    daemons: Daemons, effects: Effects
) -> None:
    daemon = await daemons.start(plugins=[effects.plugin])
    agent = await daemon.agent(tools=TOOLS)
    for _ in range(3):
        daemon.model._calls = 0
        daemon.model.calls_all(("pay", {}), ("ship", {}))
    await begin(agent, "go").result()
    assert effects.runs == ["pay", "ship"] * 3
    calls = await daemon.daemon.journal.calls(KEY)
    assert len(calls) == 6
    assert "call_1_3" in calls


async def test_a_tool_that_exits_ends_its_own_call(
    daemons: Daemons, effects: Effects
) -> None:
    daemon = await daemons.start(plugins=[effects.plugin])
    agent = await daemon.agent(tools=TOOLS)
    for problem in (SystemExit(3), KeyboardInterrupt()):
        effects.raises = {"pay": problem}
        daemon.model.calls("pay")
        assert await agent.ask("go") == "You said: "
        assert "internal error" in (await outputs(daemon))[0]
