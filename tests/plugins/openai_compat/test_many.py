"""Very much at once: read in time that grows with what there is, and no faster."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from typing import Any

import pytest
from agenthost_openai_compat.messages.reading import Reader as MessageReader
from agenthost_openai_compat.reading import Reader
from agenthost_openai_compat.responses.reading import ItemReader

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
