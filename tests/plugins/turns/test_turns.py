"""The promises of a turn, whatever surface started it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agenthost import (
    Cancelled,
    Conflict,
    Context,
    ProviderError,
    ProviderFault,
    Role,
    Step,
    StorageFull,
    ToolOutput,
    TurnOptions,
    Usage,
    user_message,
)
from agenthost.context import OPERATOR
from agenthost.testing import Pause
from agenthost.testing.daemons import Daemons, RunningDaemon
from agenthost.turns.events import Missed, TextDelta
from agenthost.turns.turn import WATCHER_EVENTS, Turn, Watcher


async def test_stop_ends_a_turn_and_keeps_what_was_said(daemon: RunningDaemon) -> None:
    daemon.model.says("one", Pause(), "two")
    agent = await daemon.agent()
    turn = agent.start("count")
    await turn.seen("one")
    await turn.stop()
    with pytest.raises(Cancelled):
        await turn.result()
    messages = (await agent.session())["messages"]
    assert [m["content"] for m in messages] == ["count", "one"]


async def test_turns_of_a_session_run_one_after_another(daemon: RunningDaemon) -> None:
    first = Pause()
    daemon.model.says(first, "first")
    daemon.model.says("second")
    agent = await daemon.agent()
    one, two = agent.start("1"), agent.start("2")
    await first.reached.wait()
    assert len(daemon.model.requests) == 1
    first.go_on()
    assert (await one.result()).text == "first"
    assert (await two.result()).text == "second"
    said = [message.text for message in daemon.model.requests[1].messages]
    assert said == ["1", "first", "2"]


async def test_a_stop_reaches_a_turn_that_still_waits(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says(pause, "done")
    agent = await daemon.agent()
    one, two = agent.start("1"), agent.start("2")
    await pause.reached.wait()
    await two.stop()
    pause.go_on()
    assert (await one.result()).text == "done"
    assert len(daemon.model.requests) == 1


async def test_a_turn_stopped_before_its_first_step_ends(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    turn = agent.start("hello")
    assert turn.turn.cancel("at once")
    async with asyncio.timeout(30):
        with pytest.raises(Cancelled):
            await turn.result()
    assert daemon.daemon.turns.running == 0


async def test_a_model_reads_what_its_tool_answered(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is 42.")
    agent = await daemon.agent()
    result = await agent.start("what is 6*7").result()
    assert result.text == "It is 42."
    assert result.iterations == 2
    assert result.usage == Usage(20, 10)
    answer = daemon.model.requests[1].messages[-1]
    assert answer.role is Role.TOOL
    assert isinstance(answer.parts[0], ToolOutput)
    assert "42" in answer.parts[0].text


async def test_a_tool_the_agent_was_not_given_is_refused(daemon: RunningDaemon) -> None:
    daemon.model.calls("file_write", path="x", content="y")
    agent = await daemon.agent(tools=["file_read"])
    await agent.start("write").result()
    output = daemon.model.requests[1].messages[-1].parts[0]
    assert isinstance(output, ToolOutput)
    assert output.is_error
    assert "no right" in output.text
    assert [tool.name for tool in daemon.model.requests[0].tools] == ["file_read"]


async def test_wrong_arguments_are_named_to_the_model(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", formula="1")
    agent = await daemon.agent()
    await agent.start("go").result()
    output = daemon.model.requests[1].messages[-1].parts[0]
    assert isinstance(output, ToolOutput)
    assert "expression" in output.text


async def test_a_failing_provider_fails_the_turn_and_keeps_the_question(
    daemon: RunningDaemon,
) -> None:
    daemon.model.fails(ProviderFault.SERVER, "half an ")
    agent = await daemon.agent()
    turn = agent.start("hello")
    turn.turn.watch()
    with pytest.raises(ProviderError):
        await turn.result()
    messages = (await agent.session())["messages"]
    assert [m["content"] for m in messages] == ["hello", "half an "]
    assert await agent.ask("again") == "You said: again"


async def test_an_agent_cannot_wait_for_itself(daemon: RunningDaemon) -> None:
    daemon.model.calls("agent_call", agent_id="tester", message="hi")
    daemon.model.says("I cannot.")
    agent = await daemon.agent()
    await agent.start("call yourself").result()
    output = daemon.model.requests[1].messages[-1].parts[0]
    assert isinstance(output, ToolOutput)
    assert "cannot call itself" in output.text


async def test_an_agent_asks_another(daemon: RunningDaemon) -> None:
    await daemon.agent("helper", tools=[])
    daemon.model.calls("agent_call", agent_id="helper", message="hi")
    daemon.model.says("hello from helper")
    daemon.model.says("it said hello")
    agent = await daemon.agent()
    assert (await agent.start("greet").result()).text == "it said hello"
    output = daemon.model.requests[2].messages[-1].parts[0]
    assert isinstance(output, ToolOutput)
    assert "hello from helper" in output.text


async def test_stopping_a_caller_stops_whom_it_called(daemon: RunningDaemon) -> None:
    helper = await daemon.agent("helper", tools=[])
    pause = Pause()
    daemon.model.calls("agent_call", agent_id="helper", message="hi")
    daemon.model.says(pause, "never")
    agent = await daemon.agent()
    turn = agent.start("greet")
    await pause.reached.wait()
    await turn.stop()
    await daemon.daemon.turns.stop_all(helper.id, "test")
    assert daemon.daemon.turns.running == 0


async def test_the_same_turn_id_is_the_same_turn(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    known = daemon.daemon.agents.get(agent.id)
    context = Context(OPERATOR)
    options = TurnOptions(turn_id="3f0c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b11")
    turns = daemon.daemon.turns
    message = user_message("once")
    first = turns.start(context, known, message, options)
    assert turns.start(context, known, message, options) is first
    result = await first.result()
    again = turns.start(context, known, message, options)
    assert (await again.result()).text == result.text
    assert len(daemon.model.requests) == 1


async def test_a_turn_that_goes_on_does_not_read_its_own_broken_answer(
    daemon: RunningDaemon,
) -> None:
    daemon.model.fails(ProviderFault.SERVER, "half an ")
    daemon.model.says("a whole answer")
    agent = await daemon.agent()
    known = daemon.daemon.agents.get(agent.id)
    options = TurnOptions(turn_id="0b9d6b5a-7c1e-4a51-9d5c-2f6f0a2f9a11")
    context, turns = Context(OPERATOR), daemon.daemon.turns
    message = user_message("go on")
    with pytest.raises(ProviderError):
        await turns.watch(context, known, message, options).turn.result()
    assert [m["content"] for m in (await agent.session())["messages"]] == [
        "go on",
        "half an ",
    ]
    result = await turns.start(context, known, message, options).result()
    assert result.text == "a whole answer"
    assert [m.text for m in daemon.model.requests[-1].messages] == ["go on"]


class FullOnce:
    """What a journal writes with, whose first write finds the disk full."""

    def __init__(self, keep: Callable[..., asyncio.Future[None]]) -> None:
        self._keep = keep
        self.refused = asyncio.Event()

    def keep(self, *steps: Step) -> asyncio.Future[None]:
        if self.refused.is_set():
            return self._keep(*steps)
        self.refused.set()
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failed.set_exception(StorageFull("the disk is full"))
        return failed


async def test_no_answer_is_kept_behind_a_message_that_was_lost(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = Pause()
    daemon.model.says("half", pause, "whole")
    agent = await daemon.agent()
    journal = FullOnce(daemon.daemon.journal.keep)
    monkeypatch.setattr(daemon.daemon.journal, "keep", journal.keep)
    known = daemon.daemon.agents.get(agent.id)
    context = Context(OPERATOR)
    turn = daemon.daemon.turns.start(context, known, user_message("lost"))
    await journal.refused.wait()
    pause.go_on()
    with pytest.raises(StorageFull):
        await turn.result()
    assert (await agent.session())["messages"] == []
    await agent.ask("again")
    said = (await agent.session())["messages"]
    assert [m["content"] for m in said] == ["again", "You said: again"]


async def test_a_suspended_agent_takes_no_messages(daemon: RunningDaemon) -> None:
    from dataclasses import replace

    from agenthost.agent import AgentState

    agent = await daemon.agent()
    known = replace(daemon.daemon.agents.get(agent.id), state=AgentState.SUSPENDED)
    with pytest.raises(Conflict):
        daemon.daemon.turns.start(Context(OPERATOR), known, user_message("hi"))


async def test_a_cut_answer_runs_no_tool(daemon: RunningDaemon) -> None:
    daemon.model.is_cut("I was about to")
    agent = await daemon.agent()
    assert await agent.ask("write a lot") == "I was about to"


async def test_two_turns_share_a_byte_identical_prefix(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    await agent.ask("two")
    first, second = daemon.model.requests
    assert first.system == second.system
    assert first.tools == second.tools
    assert list(first.tools) == sorted(first.tools, key=lambda tool: tool.name)
    assert second.messages[: len(first.messages)] == first.messages


async def test_a_new_session_remembers_nothing(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    answer = await daemon.http.post(f"/api/agents/{agent.id}/session/reset")
    assert answer.json()["status"] == "reset"
    await agent.ask("two")
    assert [m.text for m in daemon.model.requests[-1].messages] == ["two"]


@pytest.mark.setting("compaction.threshold_messages", "compaction.keep_recent")
async def test_compaction_keeps_originals_and_sends_the_summary_first(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(
        config="[compaction]\nthreshold_messages = 6\nkeep_recent = 2\n"
    )
    agent = await daemon.agent()
    for number in range(4):
        await agent.ask(f"message {number}")
    daemon.model.says("they counted")
    answer = await daemon.http.post(f"/api/agents/{agent.id}/session/compact")
    assert answer.json() == {
        "status": "compacted",
        "message": "6 messages summarized, 2 kept",
    }
    await agent.ask("next")
    sent = [message.text for message in daemon.model.requests[-1].messages]
    assert sent[0].endswith("they counted")
    assert sent[1:] == ["message 3", "You said: message 3", "next"]


async def test_compaction_below_the_threshold_changes_nothing(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("hello")
    answer = await daemon.http.post(f"/api/agents/{agent.id}/session/compact")
    assert answer.json()["status"] == "ok"


@pytest.mark.manifest("resources.max_llm_tokens_per_hour")
async def test_an_hourly_token_quota_refuses_the_next_turn(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent(extra="[resources]\nmax_llm_tokens_per_hour = 15\n")
    assert (await agent.send("one")).status_code == 200
    refused = await agent.send("two")
    assert refused.status_code == 429
    assert refused.json()["code"] == "quota_exceeded"


async def test_a_slow_watcher_is_told_what_it_missed(daemon: RunningDaemon) -> None:
    context = Context(OPERATOR)
    turn = Turn("turn", context, user_message("hi"), TurnOptions())
    watcher = Watcher(turn)
    for _ in range(WATCHER_EVENTS + 5):
        watcher.put(TextDelta("x"))
    events = watcher.events()
    assert await anext(events) == Missed(5)
    assert await anext(events) == TextDelta("x" * WATCHER_EVENTS)


async def test_neighbouring_reads_run_together(daemon: RunningDaemon) -> None:
    from agenthost import ToolUse

    toolbox: Any = daemon.daemon.toolbox
    names = ["kv_get", "file_list", "kv_set", "file_read", "calculate"]
    groups = toolbox._groups([ToolUse(name, name, {}) for name in names])
    assert [[use.name for use in group] for group in groups] == [
        ["kv_get", "file_list"],
        ["kv_set"],
        ["file_read", "calculate"],
    ]


async def test_a_full_mailbox_refuses_politely(daemon: RunningDaemon) -> None:
    from agenthost_turns.mailbox import WAITING_PER_SESSION

    pause = Pause()
    daemon.model.says(pause, "done")
    agent = await daemon.agent()
    turns = [agent.start(str(n)) for n in range(WAITING_PER_SESSION + 1)]
    await pause.reached.wait()
    await asyncio.sleep(0)
    refused = turns[-1]
    from agenthost import RateLimited

    with pytest.raises(RateLimited):
        await refused.result()
    pause.go_on()
    await asyncio.gather(*(turn.result() for turn in turns[:-1]))
