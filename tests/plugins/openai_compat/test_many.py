"""Very much at once: read in time that grows with what there is, and no faster."""

from __future__ import annotations

import cProfile
import json
import pstats
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from agenthost.testing.daemons import RunningDaemon
from agenthost_openai_compat.messages.reading import Reader as MessageReader
from agenthost_openai_compat.reading import Reader
from agenthost_openai_compat.responses.reading import ItemReader
from agenthost_turns import resume
from agenthost_turns.histories import let_through

HELLO = {"role": "user", "content": "hi"}


def chat(count: int) -> None:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"c{at}", "function": function} for at in range(count)]
    results = [
        {"role": "tool", "tool_call_id": f"c{at}", "content": ""} for at in range(count)
    ]
    said = {"role": "assistant", "tool_calls": calls}
    asked = Reader({}, {}, names=False).read([HELLO, said, *results])
    assert len(asked.message.parts) == count


def messages(count: int) -> None:
    use: dict[str, Any] = {"type": "tool_use", "name": "f", "input": {}}
    uses = [{**use, "id": f"c{at}"} for at in range(count)]
    results = [{"type": "tool_result", "tool_use_id": f"c{at}"} for at in range(count)]
    said = {"role": "assistant", "content": uses}
    answers = {"role": "user", "content": results}
    asked = MessageReader({}, {}).read(None, [HELLO, said, answers])
    assert len(asked.message.parts) == count


def responses(count: int) -> None:
    call = {"type": "function_call", "name": "f", "arguments": "{}"}
    calls = [{**call, "call_id": f"c{at}"} for at in range(count)]
    outputs = [
        {"type": "function_call_output", "call_id": f"c{at}", "output": ""}
        for at in range(count)
    ]
    reader = ItemReader({})
    question = {"type": "input_text", "text": "hi"}
    asked = {"type": "message", "role": "user", "content": [question]}
    reader.add([asked, *calls, *outputs], {})
    assert len(reader.asked("").message.parts) == count


@pytest.mark.parametrize("read", [chat, messages, responses])
def test_twice_as_many_calls_take_twice_as_long(read: Callable[[int], None]) -> None:
    def steps(count: int) -> int:
        profile = cProfile.Profile()
        profile.runcall(read, count)
        return int(getattr(pstats.Stats(profile), "total_calls"))  # noqa: B009 - no stub has it

    steps(10)
    assert steps(400) < 2.2 * steps(200)


async def test_what_many_calls_came_to_is_one_entry_that_counts(
    daemon: RunningDaemon,
) -> None:
    """A few are an entry each, those that are told as unknown too."""
    await daemon.agent("ada")
    for count in (4, 200):
        assert (await brought(daemon, count)).status_code == 200
        entries = (await daemon.http.get("/api/audit/recent?limit=500")).json()
        kinds = [entry["event_type"] for entry in entries["entries"]]
        assert kinds.count("tool_ended") == 4
    (entry,) = [e for e in entries["entries"] if e["event_type"] == "custom"]
    told = json.loads(entry["details"])
    assert told["type"] == "results_brought"
    facts = told["data"]
    assert (facts["results"], facts["unknown"]) == (200, 100)
    assert facts["first"] == [f"c{at}" for at in range(0, 32, 2)]
    assert facts["first_unknown"] == [f"c{at}" for at in range(1, 33, 2)]


async def brought(daemon: RunningDaemon, count: int) -> httpx.Response:
    """Ask with so many calls, of which every other has a result."""
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": f"c{at}", "function": function} for at in range(count)]
    results = [
        {"role": "tool", "tool_call_id": f"c{at}", "content": "x"}
        for at in range(0, count, 2)
    ]
    said = {"role": "assistant", "tool_calls": calls}
    asked = {"model": "ada", "messages": [HELLO, said, *results]}
    return await daemon.http.post("/v1/chat/completions", json=asked)


async def test_a_long_history_is_let_through_in_a_thread(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    await daemon.agent("ada")
    threads: list[bool] = []

    def looked(*asked: Any, **how: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return let_through(*asked, **how)

    monkeypatch.setattr(resume, "let_through", looked)
    for count in (100, 2_000):
        assert (await brought(daemon, count)).status_code == 200
    assert threads == [True, False]
