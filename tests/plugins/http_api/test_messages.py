"""Messages: blocking, streamed, repeated, refused."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agenthost import OPERATOR, Cancelled, Context, ProviderFault, user_message
from agenthost.testing import Pause
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_http_api.messages import frames_of
from agenthost_turns.engine import TurnEngine


async def test_a_blocking_message_answers_with_totals(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("two")
    agent = await daemon.agent()
    answer = await agent.send("1+1?")
    assert answer.json() == {
        "response": "two",
        "input_tokens": 20,
        "output_tokens": 10,
        "iterations": 2,
        "cost_usd": 0.00004,
        "finish": "stop",
    }


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"message": ""}', 400, "message"),
        (b'{"message": "  "}', 400, "message"),
        (b'{"message": 5}', 400, "message"),
        (b"{}", 400, "message"),
        (b"[]", 400, "object"),
        (b'{"message": "x"', 400, "JSON"),
        (json.dumps({"message": "x" * 70_000}).encode(), 413, "message"),
        (b'{"message": "' + b"x" * 1_200_000 + b'"}', 413, "limit"),
    ],
)
@pytest.mark.parametrize("path", ["message", "message/stream"])
async def test_a_bad_message_is_refused_before_anything_begins(
    daemon: RunningDaemon, path: str, body: bytes, status: int, words: str
) -> None:
    agent = await daemon.agent()
    answer = await daemon.http.post(
        f"/api/agents/{agent.id}/{path}",
        content=body,
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    assert (await agent.session())["messages"] == []


async def test_a_stream_shows_text_tools_and_one_done(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="6*7")
    daemon.model.says("It is ", "42.")
    agent = await daemon.agent()
    events = await agent.events("6*7?")
    names = [name for name, _ in events]
    assert names[:2] == ["tool_use", "tool_result"]
    assert names.count("done") == 1
    assert names[-1] == "done"
    text = "".join(data["content"] for name, data in events if name == "chunk")
    assert text == "It is 42."
    assert events[0][1]["tool"] == "calculate"
    assert events[1][1]["input"] == {"expression": "6*7"}
    done = events[-1][1]
    assert done["done"] is True
    assert done["usage"] == {"input_tokens": 20, "output_tokens": 10}


async def test_a_failed_stream_says_error_then_done(daemon: RunningDaemon) -> None:
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.fails(ProviderFault.OVERLOADED, "half")
    agent = await daemon.agent()
    events = await agent.events("hello")
    names = [name for name, _ in events]
    assert names == ["tool_use", "tool_result", "chunk", "error", "done"]
    assert events[-2][1]["code"] == "overloaded"
    total = await daemon.daemon.usage.of_agent(agent.id)
    assert (total.requests, events[-1][1]["usage"]) == (
        2,
        {"input_tokens": total.input_tokens, "output_tokens": total.output_tokens},
    )
    assert total.output_tokens > 5


async def test_a_client_that_leaves_a_stream_stops_its_turn(
    daemon: RunningDaemon,
) -> None:
    pause = Pause()
    daemon.model.says("one", pause, "two")
    agent = await daemon.agent()
    async with daemon.http.stream(
        "POST", f"/api/agents/{agent.id}/message/stream", json={"message": "count"}
    ) as answer:
        async for line in answer.aiter_lines():
            if "one" in line:
                break
    engine = daemon.daemon.turns
    assert isinstance(engine, TurnEngine)
    running = engine._live.values()
    await asyncio.wait([turn.task for turn in running if turn.task], timeout=30)
    assert daemon.daemon.turns.running == 0
    messages = (await agent.session())["messages"]
    assert [m["content"] for m in messages] == ["count", "one"]


async def test_a_stopped_blocking_message_is_a_conflict(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says(pause, "never")
    agent = await daemon.agent()
    sending = asyncio.create_task(agent.send("hello"))
    await pause.reached.wait()
    stopped = await daemon.http.post(f"/api/agents/{agent.id}/stop")
    assert stopped.json()["status"] == "stopped"
    answer = await sending
    assert answer.status_code == 409
    assert answer.json()["code"] == "cancelled"


async def test_one_idempotency_key_is_one_turn(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    answers = await asyncio.gather(
        *(agent.send("once", Idempotency_Key="k1") for _ in range(50))
    )
    assert {answer.json()["response"] for answer in answers} == {"You said: once"}
    assert len(daemon.model.requests) == 1
    assert len((await agent.session())["messages"]) == 2


async def read_to(
    daemon: RunningDaemon, agent: RunningAgent, word: str, **more: Any
) -> str:
    """Stream a message until a word comes, leave, and return the word's event id."""
    event_id = ""
    async with daemon.http.stream(
        "POST",
        f"/api/agents/{agent.id}/message/stream",
        json={"message": "count"},
        **more,
    ) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                event_id = line.removeprefix("id: ")
            if word in line:
                break
    return event_id


@pytest.mark.parametrize(
    "more",
    [{"params": {"detach": "true"}}, {"headers": {"Idempotency-Key": "k"}}],
    ids=["detach", "key"],
)
async def test_a_turn_goes_on_and_is_read_again_behind_the_last_event(
    daemon: RunningDaemon, more: dict[str, Any]
) -> None:
    pause = Pause()
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("one", pause, "two")
    agent = await daemon.agent()
    event_id = await read_to(daemon, agent, "one", **more)
    turn_id, _, offset = event_id.rpartition(":")
    assert offset == "3"
    path = f"/api/agents/{agent.id}/message/stream?turn={turn_id}"
    reading = asyncio.create_task(
        daemon.http.get(path, headers={"Last-Event-ID": event_id})
    )
    whole = asyncio.create_task(daemon.http.get(path))
    await asyncio.sleep(0.05)
    pause.go_on()
    assert '"content": "one' not in (await reading).text
    assert '"content": "two"' in (await reading).text
    again = (await whole).text
    assert again.index("event: tool_use") < again.index("event: tool_result")
    assert again.index("event: tool_result") < again.index('"content": "one')
    assert again.rstrip().endswith("}")
    assert again.count("event: done") == 1


async def test_a_repeated_stream_brings_its_words_and_tools(
    daemon: RunningDaemon,
) -> None:
    daemon.model.calls("calculate", expression="1+1")
    daemon.model.says("It is ", "2.")
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}/message/stream"
    sent: dict[str, Any] = {
        "json": {"message": "1+1?"},
        "headers": {"Idempotency-Key": "k"},
    }
    first, second = [(await daemon.http.post(path, **sent)).text for _ in range(2)]
    assert "event: tool_result" in second
    assert '"content": "It is 2."' in second
    assert first.split("event: done")[1] == second.split("event: done")[1]
    assert len(daemon.model.requests) == 2


async def test_a_second_reader_that_leaves_stops_nobody(daemon: RunningDaemon) -> None:
    pause = Pause()
    daemon.model.says("one", pause, "two")
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}/message/stream"
    first = asyncio.create_task(daemon.http.post(path, json={"message": "count"}))
    await pause.reached.wait()
    (question,) = (await agent.session())["messages"]
    other = f"{path}?turn={question['turn_id']}"
    async with daemon.http.stream("GET", other) as answer:
        async for line in answer.aiter_lines():
            if "one" in line:
                break
    pause.go_on()
    assert "two" in (await first).text


async def test_a_key_with_another_body_is_refused(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    assert (await agent.send("9+9", Idempotency_Key="k")).status_code == 200
    refused = await agent.send("2+3", Idempotency_Key="k")
    assert (refused.status_code, refused.json()["code"]) == (
        422,
        "idempotency_mismatch",
    )
    path = f"/api/agents/{agent.id}/message"
    spaced = b'{ "message" :  "9+9" }'
    headers = {"Idempotency-Key": "k", "content-type": "application/json"}
    again = await daemon.http.post(path, content=spaced, headers=headers)
    assert again.json()["response"] == "You said: 9+9"


async def test_an_unknown_turn_is_not_found(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    nobody = "11111111-2222-4333-8444-555555555555"
    path = f"/api/agents/{agent.id}"
    read = await daemon.http.get(f"{path}/message/stream?turn={nobody}")
    resumed = await daemon.http.post(f"{path}/turns/{nobody}/resume")
    assert (read.status_code, resumed.status_code) == (404, 404)
    unnamed = await daemon.http.get(f"{path}/message/stream")
    assert unnamed.status_code == 400
    assert "turn" in unnamed.json()["error"]


async def test_messages_tell_how_their_turn_stands(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("hello")
    daemon.model.fails(ProviderFault.SERVER, "half")
    await agent.events("again")
    hello, answer, again, half = (await agent.session())["messages"]
    assert [m["status"] for m in (hello, answer)] == ["complete", "complete"]
    assert hello["turn_id"] == answer["turn_id"]
    assert answer["model"] == "scripted/scripted-model"
    assert answer["usage"] == {
        "input_tokens": 10,
        "output_tokens": 5,
        "cost_usd": 0.00002,
    }
    assert hello["at"].endswith("Z")
    assert hello["id"] < answer["id"]
    assert (again["status"], half["status"]) == ("failed", "failed")
    assert "scripted to fail" in again["error"]


async def test_words_that_some_readers_take_for_a_line_end_are_escaped(
    daemon: RunningDaemon,
) -> None:
    daemon.model.says("a\u2028b\x85c")
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}/message/stream"
    text = (await daemon.http.post(path, json={"message": "go"})).text
    assert "\\u2028b\\u0085c" in text


async def test_a_session_folds_tools_into_the_message_that_asked(
    daemon: RunningDaemon,
) -> None:
    daemon.model.calls("calculate", expression="2+2")
    daemon.model.says("four")
    agent = await daemon.agent()
    await agent.ask("2+2?")
    session = await agent.session()
    assert [m["role"] for m in session["messages"]] == [
        "User",
        "Assistant",
        "Assistant",
    ]
    (tool,) = session["messages"][1]["tools"]
    assert tool["name"] == "calculate"
    assert "4" in tool["result"]
    assert session["message_count"] == 3
    assert session["context_window_tokens"] > 0
    (item,) = (await daemon.http.get("/api/sessions")).json()["sessions"]
    assert item["message_count"] == 3
    assert item["agent_name"] == agent.name


@pytest.mark.parametrize("stays", [False, True])
async def test_frames_that_nobody_has_read_let_go_of_their_turn(
    daemon: RunningDaemon, *, stays: bool
) -> None:
    agent = await daemon.agent("ada")
    pause = Pause()
    daemon.model.says("one ", pause, "two")
    known = daemon.daemon.agents.get(agent.id)
    turns = daemon.daemon.turns
    watcher = turns.watch(Context(OPERATOR), known, user_message("hello"))
    await pause.reached.wait()
    await frames_of(watcher, stays=stays).aclose()
    assert not watcher.turn.watched
    pause.go_on()
    if stays:
        assert (await watcher.turn.result()).text == "one two"
    else:
        with pytest.raises(Cancelled):
            await watcher.turn.result()
