"""How answers end: told as it was, asked again when cut, never empty for nothing."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import (
    OPERATOR,
    Answered,
    Citation,
    Completion,
    Context,
    CutShort,
    Finish,
    Message,
    ProviderError,
    ProviderFault,
    Reasoning,
    Role,
    Text,
    ToolUse,
    TurnOptions,
    Usage,
    user_message,
)
from agenthost.testing import Pause
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost.turns.events import Done, Failed, TextDelta, Thought, TurnEvent
from agenthost.turns.turn import Watcher
from agenthost_turns.ends import GO_ON, LEAST

TURN = "3f0c2f6e-9f0e-4f0e-8a58-0d9c3a1f7b22"
SMALL = "[model]\nmax_tokens = 100\n"


def watched(agent: RunningAgent, text: str, **options: Any) -> Watcher:
    """Start a turn and watch it."""
    daemon = agent.host.daemon
    known = daemon.agents.get(agent.id)
    asked = TurnOptions(**options)
    return daemon.turns.watch(Context(OPERATOR), known, user_message(text), asked)


async def all_of(watcher: Watcher) -> list[TurnEvent]:
    """Hear a turn to its end."""
    return [event async for event in watcher.events()]


def asked_for(daemon: RunningDaemon) -> list[int | None]:
    """How long each answer was allowed to be."""
    return [request.max_tokens for request in daemon.model.requests]


async def stored(agent: RunningAgent) -> list[tuple[str, str, str | None]]:
    """What the session shows: who, what and why it ended."""
    messages = (await agent.session())["messages"]
    return [(m["role"], m["content"], m.get("finish")) for m in messages]


async def test_a_whole_answer_ends_with_stop(daemon: RunningDaemon) -> None:
    daemon.model.says("All of it.")
    agent = await daemon.agent()
    assert (await agent.start("go").result()).finish is Finish.STOP
    assert await stored(agent) == [
        ("User", "go", None),
        ("Assistant", "All of it.", "stop"),
    ]


async def test_an_answer_with_words_that_was_cut_is_given_and_says_so(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut("Half of")
    agent = await daemon.agent()
    result = await agent.start("go").result()
    assert (result.text, result.finish) == ("Half of", Finish.LENGTH)
    assert len(daemon.model.requests) == 1
    assert (await stored(agent))[-1] == ("Assistant", "Half of", "length")


async def test_what_was_blocked_behind_its_first_words_says_so(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_blocked("So first you")
    agent = await daemon.agent()
    result = await agent.start("go").result()
    assert (result.text, result.finish) == ("So first you", Finish.CONTENT_BLOCKED)


async def test_a_turn_that_is_asked_for_again_ends_as_it_did(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut("Half of")
    agent = await daemon.agent()
    (await watched(agent, "go", turn_id=TURN).turn.result())
    known = daemon.daemon.agents.get(agent.id)
    again = watched(agent, "go", turn_id=TURN)
    assert (await again.turn.result()).finish is Finish.LENGTH
    late = await daemon.daemon.turns.attach(known, TURN)
    last = (await all_of(late))[-1]
    assert isinstance(last, Done)
    assert last.result.finish is Finish.LENGTH
    assert len(daemon.model.requests) == 1


@pytest.mark.parametrize("words", [(), (" \n",)])
async def test_an_answer_cut_while_thinking_is_asked_again_with_twice_the_room(
    daemon: RunningDaemon, words: tuple[str, ...]
) -> None:
    daemon.model.is_cut(*words)
    daemon.model.says("At last.")
    agent = await daemon.agent(extra=SMALL)
    result = await agent.start("go").result()
    assert result.text.strip() == "At last."
    assert result.finish is Finish.STOP
    assert (result.usage, result.iterations) == (Usage(20, 10), 2)
    assert asked_for(daemon) == [100, 200]
    first, second = daemon.model.requests
    assert first.messages == second.messages
    booked = await daemon.daemon.usage.of_agent(agent.id)
    assert (booked.requests, booked.input_tokens) == (2, 20)


async def test_it_is_asked_again_once_and_then_an_error_with_its_remedy(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut()
    daemon.model.is_cut()
    agent = await daemon.agent(extra=SMALL)
    answer = await agent.send("go")
    assert answer.status_code == 500
    assert answer.json()["code"] == "cut_short"
    assert "200 tokens" in answer.json()["error"]
    assert "raise model.max_tokens in the manifest" in answer.json()["error"]
    assert asked_for(daemon) == [100, 200]
    booked = await daemon.daemon.usage.of_agent(agent.id)
    assert (booked.requests, booked.input_tokens) == (2, 20)
    assert await agent.ask("again") == "You said: again"


async def test_the_room_ends_at_the_models_own_limit(daemon: RunningDaemon) -> None:
    daemon.model.is_cut()
    daemon.model.is_cut()
    agent = await daemon.agent(extra="[model]\nmax_tokens = 4000\n")
    with pytest.raises(CutShort, match="a model with longer answers"):
        await agent.start("go").result()
    assert asked_for(daemon) == [4000, 4096]


async def test_where_nobody_set_a_limit_the_next_is_generous(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut()
    daemon.model.says("At last.")
    agent = await daemon.agent(extra='[model]\nmodel = "unlisted"\nprovider="scripted"')
    assert await agent.ask("go") == "At last."
    assert asked_for(daemon) == [None, LEAST]


async def test_the_callers_own_limit_is_never_gone_beyond(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut("\n")
    agent = await daemon.agent(extra=SMALL)
    events = await all_of(watched(agent, "go", max_tokens=7))
    assert asked_for(daemon) == [7]
    last = events[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, CutShort)
    assert "give it more max_tokens" in last.error.message
    # Surfaces that hand it on as it is find all they need.
    assert (last.so_far.text, last.so_far.finish) == ("\n", Finish.LENGTH)


async def test_a_call_that_was_cut_is_made_again_behind_the_words_said(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut("I will ", in_call=True)
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("42")
    agent = await daemon.agent(extra=SMALL)
    watcher = watched(agent, "go", turn_id=TURN)
    events = await all_of(watcher)
    said = [event for event in events if isinstance(event, TextDelta)]
    assert "".join(event.text for event in said) == "I will 42"
    assert said[-1].offset == len("I will 42")
    first, again, after = daemon.model.requests
    assert [m.text for m in again.messages] == ["go", "I will ", GO_ON]
    assert (first.max_tokens, again.max_tokens) == (100, 200)
    # What went between is in no history, and the words stand before the call.
    assert [m.role for m in after.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    words, call = after.messages[1].parts
    assert words == Text("I will ")
    assert isinstance(call, ToolUse)
    late = await daemon.daemon.turns.attach(daemon.daemon.agents.get(agent.id), TURN)
    told = [e.text for e in await all_of(late) if isinstance(e, TextDelta)]
    assert "".join(told) == "I will 42"


async def test_a_call_cut_twice_is_an_error_and_its_words_stay(
    daemon: RunningDaemon,
) -> None:
    daemon.model.is_cut("I will ", in_call=True)
    daemon.model.is_cut("read ", in_call=True)
    agent = await daemon.agent()
    with pytest.raises(CutShort, match="inside a tool call"):
        await agent.start("go").result()
    assert (await stored(agent))[1][:2] == ("Assistant", "I will read ")


async def test_a_stop_while_it_is_asked_again_ends_it(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.is_cut()
    daemon.model.says(pause, "late")
    agent = await daemon.agent()
    turn = agent.start("go")
    await pause.reached.wait()
    await turn.stop()
    messages = (await agent.session())["messages"]
    assert [m["status"] for m in messages] == ["stopped"]


async def test_the_words_before_a_cut_stand_behind_thoughts(
    daemon: RunningDaemon,
) -> None:
    from agenthost_turns.ends import Room

    agent = await daemon.agent()
    context = agent.context()
    assert context.agent is not None
    room = Room(daemon.daemon.models.default(), context.agent, TurnOptions())
    half = Message(Role.ASSISTANT, (Text("I "),))
    room.grow(Completion(half, Finish.LENGTH, Usage(), cut_call=True))
    thought, use = Reasoning("hm"), ToolUse("c", "look", {})
    whole = room.whole(Message(Role.ASSISTANT, (thought, use)))
    assert whole.parts == (thought, Text("I "), use)
    assert room.whole(half) is half


async def test_what_was_cut_off_before_leaves_the_citations_behind_it(
    daemon: RunningDaemon,
) -> None:
    from agenthost_turns.ends import Room

    context = (await daemon.agent()).context()
    assert context.agent is not None
    room = Room(daemon.daemon.models.default(), context.agent, TurnOptions())
    half = Message(Role.ASSISTANT, (Text("so "),))
    room.grow(Completion(half, Finish.LENGTH, Usage(), cut_call=True))
    page = Citation("https://a.example")
    whole = room.whole(Message(Role.ASSISTANT, (Text("it is", (page,)),)))
    assert (whole.text, whole.citations) == ("so it is", (page,))


async def test_thoughts_are_told_to_who_wants_them_alone(daemon: RunningDaemon) -> None:
    daemon.model.thinks("h", "m", then="yes")
    agent = await daemon.agent()
    curious = watched(agent, "go")
    curious.thoughts = True
    other = curious.turn.watch()
    told, plain = await all_of(curious), await all_of(other)
    assert "".join(e.text for e in told if isinstance(e, Thought)) == "hm"
    assert not [e for e in plain if isinstance(e, Thought)]
    assert [e.text for e in told if isinstance(e, TextDelta)] == ["yes"]


async def test_no_thought_is_built_that_nobody_wants(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    class Counted(Thought):
        def __init__(self, text: str) -> None:
            made.append(text)

    monkeypatch.setattr("agenthost.turns.turn.Thought", Counted)
    daemon.model.thinks("h", "m", then="yes")
    agent = await daemon.agent()
    await all_of(watched(agent, "go"))
    assert made == []


class Overflows:
    """Models that find some calls of turns too long; summaries go through."""

    def __init__(self, models: Any, *calls: int) -> None:
        self._stream = models.stream
        self._calls = calls
        self.asked: list[list[str]] = []

    async def __call__(self, target: Any, request: Any, payer: Any = None) -> Any:
        if not request.system.startswith("You condense"):
            self.asked.append([m.text for m in request.messages])
            if len(self.asked) in self._calls:
                raise ProviderError(
                    ProviderFault.CONTEXT_OVERFLOW, "scripted", "prompt is too long"
                )
        async for delta in self._stream(target, request, payer):
            yield delta
            if isinstance(delta, Answered):
                return


def overflow(daemon: RunningDaemon, *calls: int) -> Overflows:
    """Let calls of turns overflow, the first from now on is 1."""
    models = daemon.daemon.models
    overflows = Overflows(models, *calls)
    models.stream = overflows  # type: ignore[method-assign]  # a fault of the provider
    return overflows


async def test_a_conversation_that_is_too_long_is_summarised_and_goes_on(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    overflows = overflow(daemon, 1)
    daemon.model.says("They said one.")
    daemon.model.says("Here you are.")
    assert await agent.ask("two") == "Here you are."
    summary = "Summary of the conversation so far:\n\nThey said one."
    assert overflows.asked == [["one", "You said: one", "two"], [summary, "two"]]
    assert [content for _, content, _ in await stored(agent)] == [
        summary,
        "two",
        "Here you are.",
    ]
    # The next turn goes on from there, without reading the session anew.
    assert await agent.ask("three") == "You said: three"
    assert overflows.asked[-1] == [summary, "two", "Here you are.", "three"]


async def test_it_goes_on_in_the_middle_of_its_tools(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    overflow(daemon, 2)
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("They said one.")
    daemon.model.says("42")
    assert await agent.ask("6*7?") == "42"
    roles = [m.role for m in daemon.model.requests[-1].messages]
    assert roles == [Role.USER, Role.USER, Role.ASSISTANT, Role.TOOL]


async def test_it_is_summarised_once_and_then_an_error_with_its_remedy(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    overflows = overflow(daemon, 1, 2)
    daemon.model.says("They said one.")
    answer = await agent.send("two")
    assert answer.status_code == 500
    assert "prompt is too long" in answer.json()["error"]
    assert "begin anew with /new" in answer.json()["error"]
    assert len(overflows.asked) == 2
    # The summary stands, so the next message finds room.
    assert await agent.ask("three") == "You said: three"


async def test_a_first_message_that_is_too_long_is_an_error_at_once(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    overflows = overflow(daemon, 1)
    answer = await agent.send("one")
    assert "larger context window" in answer.json()["error"]
    assert len(overflows.asked) == 1
    assert daemon.model.requests == []


async def test_a_turn_with_its_own_history_is_not_summarised(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    overflow(daemon, 1)
    own = (user_message("a"), Message(Role.ASSISTANT, (Text("b"),)))
    with pytest.raises(ProviderError, match="begin anew"):
        await watched(agent, "c", history=own).turn.result()
    assert daemon.model.requests == []


async def test_a_summary_that_fails_leaves_the_fault_of_the_answer(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    overflow(daemon, 1)
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    with pytest.raises(ProviderError, match="prompt is too long") as caught:
        await agent.start("two").result()
    assert caught.value.fault is ProviderFault.CONTEXT_OVERFLOW
    assert await agent.ask("three") == "You said: three"


async def test_a_turn_that_others_stand_behind_is_not_summarised(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    daemon.model.fails(ProviderFault.BAD_REQUEST)
    with pytest.raises(ProviderError):
        await watched(agent, "two", turn_id=TURN).turn.result()
    await agent.ask("three")
    before = len(daemon.model.requests)
    overflow(daemon, 1)
    with pytest.raises(ProviderError, match="begin anew"):
        await watched(agent, "two", turn_id=TURN).turn.result()
    assert len(daemon.model.requests) == before


async def test_words_that_were_heard_are_not_said_anew(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("one")
    daemon.model.fails(ProviderFault.CONTEXT_OVERFLOW, "half")
    turn = agent.start("two")
    turn.turn.watch()
    with pytest.raises(ProviderError, match="begin anew"):
        await turn.result()
    assert (await stored(agent))[-1][:2] == ("Assistant", "half")
