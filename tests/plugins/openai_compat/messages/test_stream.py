"""A message as a stream of events."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost import ProviderFault, ToolUse, Usage
from agenthost.testing import Pause
from agenthost.testing.daemons import RunningDaemon
from agenthost.testing.scripted import Answer
from agenthost_openai_compat import stream

from .asking import PATH, WEATHER, ask, asked, events_of, read_events


def block(at: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[Any]:
    """The events of one block."""
    told = [("content_block_delta", {"index": at, "delta": each}) for each in deltas]
    start = ("content_block_start", {"index": at, "content_block": begun})
    return [start, *told, ("content_block_stop", {"index": at})]


def words(at: int, *texts: str) -> list[Any]:
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return block(at, {"type": "text", "text": ""}, *deltas)


async def test_a_stream_is_the_events_of_one_message(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two\u2028\U0001f600", usage=Usage(9, 5, 3))
    async with daemon.http.stream("POST", PATH, json=asked(stream=True)) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["request-id"] == answer.headers["x-request-id"]
        text = ""
        async for piece in answer.aiter_text():
            pause.go_on()
            text += piece
    start, ping, *said, delta, stop = read_events(text)
    message = start[1]["message"]
    assert message.pop("id").startswith("msg_")
    none = {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    assert message == {
        "type": "message",
        "role": "assistant",
        "model": "service:ada",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0, **none},
    }
    assert (start[0], ping) == ("message_start", ("ping", {}))
    assert said == words(0, "one ", "two\u2028\U0001f600")
    tokens = {"input_tokens": 6, "output_tokens": 5, **none}
    tokens["cache_read_input_tokens"] = 3
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    assert delta == ("message_delta", {"delta": ended, "usage": tokens})
    assert stop == ("message_stop", {})


async def test_the_calls_of_the_clients_tools_are_blocks(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    uses = [ToolUse(f"call_{n}", "weather", {"city": n}) for n in range(2)]
    daemon.model._answers.append(Answer(("Let me see.",), calls=tuple(uses)))
    events = await events_of(daemon, tools=[WEATHER])
    said = words(0, "Let me see.")
    for at in range(2):
        begun = {"type": "tool_use", "id": f"call_{at}", "name": "weather", "input": {}}
        pieces = {"type": "input_json_delta", "partial_json": f'{{"city": {at}}}'}
        said += block(at + 1, begun, pieces)
    assert events[2:-2] == said
    assert events[-2][1]["delta"]["stop_reason"] == "tool_use"


async def test_thoughts_are_streamed_and_signed(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    daemon.model.thinks("hm, ", "well", then="yes")
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    events = await events_of(daemon, thinking=thinking)
    deltas = [told["delta"] for name, told in events if name == "content_block_delta"]
    *thoughts, signed, said = deltas
    assert "".join(each["thinking"] for each in thoughts) == "hm, well"
    assert signed["type"] == "signature_delta"
    assert signed["signature"]
    assert said == {"type": "text_delta", "text": "yes"}
    starts = [told for name, told in events if name == "content_block_start"]
    assert [told["content_block"]["type"] for told in starts] == ["thinking", "text"]
    daemon.model.thinks("hm", then="yes")
    assert "hm" not in (await ask(daemon, stream=True)).text


@pytest.mark.conformance
async def test_the_first_thought_begins_the_stream(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than the client waits: nothing but the thought begins it.
    monkeypatch.setattr(stream, "PATIENCE", 60.0)
    await daemon.agent("ada")
    pause = Pause()
    daemon.model._answers.append(Answer((pause, "yes"), thoughts=("hm",)))
    body = asked(stream=True, thinking={"type": "enabled", "budget_tokens": 1_024})
    async with daemon.http.stream("POST", PATH, json=body) as answer:
        async for piece in answer.aiter_text():
            if "thinking_delta" in piece:
                assert "yes" not in piece
                pause.go_on()
    assert pause.reached.is_set()


@pytest.mark.conformance
async def test_words_before_and_behind_the_agents_own_tools_are_blocks(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    use = ToolUse("call_1", "calculate", {"expression": "6*7"})
    daemon.model._answers.append(Answer(("Let me see.",), calls=(use,)))
    daemon.model.says("It is 42.")
    events = await events_of(daemon)
    assert events[2:-2] == words(0, "Let me see.") + words(1, "It is 42.")


@pytest.mark.conformance
async def test_an_answer_that_was_cut_off_ends_by_max_tokens(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    for said in ("half an", ""):
        daemon.model.is_cut(said)
        events = await events_of(daemon, max_tokens=3)
        assert events[2:-2] == (words(0, said) if said else [])
        assert events[-2][1]["delta"]["stop_reason"] == "max_tokens"
        assert events[-1][0] == "message_stop"


@pytest.mark.conformance
async def test_a_failure_before_the_first_word_has_its_status(
    daemon: RunningDaemon,
) -> None:
    await daemon.agent("ada")
    daemon.model.fails(ProviderFault.BILLING)
    answer = await ask(daemon, stream=True)
    assert answer.status_code == 500
    assert answer.json()["error"]["details"] == {"error_code": "billing"}


@pytest.mark.conformance
async def test_a_failure_behind_it_is_the_last_event(daemon: RunningDaemon) -> None:
    await daemon.agent("ada")
    for fault, kind in (
        (ProviderFault.BILLING, "api_error"),
        (ProviderFault.OVERLOADED, "overloaded_error"),
    ):
        daemon.model.fails(fault, "half")
        answer = await ask(daemon, stream=True)
        events = read_events(answer.text)
        name, told = events[-1]
        assert (name, told["error"]["type"]) == ("error", kind)
        assert told["request_id"] == answer.headers["request-id"]
        assert "message_stop" not in dict(events)
