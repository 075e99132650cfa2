"""A conversation that broke is read as one that every provider takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import FrameType
from typing import Any

import pytest
from agenthost import (
    ChatRequest,
    Dialect,
    Endpoint,
    Message,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)
from agenthost_chat.history import UNKNOWN
from agenthost_dialects.anthropic_messages import AnthropicMessages
from agenthost_dialects.gemini import Gemini
from agenthost_dialects.openai_chat import OpenAIChat
from agenthost_dialects.openai_responses import OpenAIResponses
from agenthost_security.session_repair import repaired
from hypothesis import given

from tests.libraries.chat.test_history import HISTORIES

from .broken_histories import NAMES, corrupted, honest
from .vendor_rules import RULES

QUICK = 500
FEW = 100
DIALECTS: Mapping[str, Dialect] = {
    "openai-chat": OpenAIChat(),
    "openai-responses": OpenAIResponses(),
    "anthropic": AnthropicMessages(),
    "gemini": Gemini(),
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = tuple(ToolDefinition(name, "A tool.", SCHEMA) for name in NAMES)
ASKED = Message(Role.USER, (Text("Which files?"),))
CALL = Message(Role.ASSISTANT, (ToolUse("a", "file_list", {}),))
RESULT = Message(Role.TOOL, (ToolOutput("a", "file_list", "one"),))
SAID = Message(Role.ASSISTANT, (Text("One."),))


def faults(vendor: str, history: Sequence[Message]) -> list[str]:
    """Say what the vendor would refuse, were the next question asked behind it."""
    messages = (*history, Message(Role.USER, (Text("Go on."),)))
    request = ChatRequest("a-model", "You help.", messages, TOOLS)
    sent = DIALECTS[vendor].encode(request, Endpoint(vendor, "https://api.example"))
    return list(RULES[vendor](json.loads(sent.body)))


def lost(before: Sequence[Message], after: Sequence[Message]) -> set[str]:
    """Give what was said before and is said no more."""
    told = "\n".join(text for message in after for text in texts(message))
    said = {text for message in before for text in texts(message) if text.strip()}
    return {text for text in said if text not in told}


def texts(message: Message) -> list[str]:
    """The words of a message and of the results in it."""
    parts = message.parts
    return [part.text for part in parts if isinstance(part, Text | ToolOutput)]


def check(seed: int) -> None:
    """Break a conversation and judge what is read of it."""
    broken = tuple(corrupted(Random(seed)))
    mended = repaired(broken)
    for vendor in DIALECTS:
        assert not faults(vendor, mended), (seed, vendor)
    assert repaired(mended) is mended, seed
    assert not lost(broken, mended), seed


def test_broken_conversations_are_taken_by_every_vendor() -> None:
    for seed in range(QUICK):
        check(seed)


@pytest.mark.parametrize("vendor", DIALECTS)
def test_each_vendor_refuses_what_is_not_mended(vendor: str) -> None:
    seeds = range(FEW)
    refused = [seed for seed in seeds if faulty(vendor, tuple(corrupted(Random(seed))))]
    assert len(refused) > FEW / 10


def faulty(vendor: str, history: Sequence[Message]) -> bool:
    """Tell whether it is refused, or cannot even be written."""
    try:
        return bool(faults(vendor, history))
    except (TypeError, ValueError):
        return True


def test_a_conversation_without_fault_is_the_same_object() -> None:
    for seed in range(FEW):
        history = tuple(honest(Random(seed)))
        assert repaired(history) is history
        assert not [fault for each in DIALECTS for fault in faults(each, history)]


def is_paired(history: Sequence[Message]) -> bool:
    """Every call is answered once right behind it, and nothing else is answered."""
    for here, message in enumerate(history):
        after = history[here + 1] if here + 1 < len(history) else None
        answers = after.parts if after and after.role is Role.TOOL else ()
        answered = sorted(part.id for part in answers if isinstance(part, ToolOutput))
        if message.role is not Role.TOOL:
            if sorted(use.id for use in message.tool_uses) != answered:
                return False
        elif here == 0 or (after is not None and after.role is Role.TOOL):
            return False
    return True


@given(HISTORIES)
def test_whatever_stands_there_every_call_has_one_result(
    history: list[Message],
) -> None:
    mended = repaired(tuple(history))
    assert is_paired(mended)
    assert repaired(mended) is mended
    assert not lost(history, mended)


def test_a_call_without_result_is_answered_as_unknown() -> None:
    unknown = ToolOutput("a", "file_list", UNKNOWN, is_error=True)
    assert repaired((ASKED, CALL)) == (ASKED, CALL, Message(Role.TOOL, (unknown,)))


def test_a_late_result_stands_behind_its_call_and_not_beside_a_stand_in() -> None:
    stand_in = ToolOutput("a", "file_list", UNKNOWN, is_error=True)
    broken = (ASKED, CALL, Message(Role.TOOL, (stand_in,)), SAID, RESULT)
    assert repaired(broken) == (ASKED, CALL, RESULT, SAID)


def test_a_result_without_call_becomes_no_word_of_the_user() -> None:
    mended = repaired((ASKED, RESULT, SAID))
    assert mended == (ASKED, CALL, RESULT, SAID)
    assert [m for m in mended if m.role is Role.USER] == [ASKED]


def test_results_that_differ_are_both_kept() -> None:
    other = Message(Role.TOOL, (ToolOutput("a", "file_list", "two"),))
    assert repaired((ASKED, CALL, RESULT, other, SAID))[2].parts == (
        ToolOutput("a", "file_list", "one\ntwo"),
    )


def test_arguments_that_broke_off_are_not_sent() -> None:
    cut = ToolUse("a", "file_list", '{"path": "a')  # type: ignore[arg-type]  # reason: as an import may leave it
    use = repaired((ASKED, Message(Role.ASSISTANT, (cut,)), RESULT))[1].tool_uses[0]
    assert use.arguments == {}
    assert "JSON" in use.malformed


class Looked(str):
    """An id that counts how often it is compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other: object) -> bool:
        """Count, and compare."""
        Looked.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def asks(*ids: str) -> Message:
    return Message(Role.ASSISTANT, tuple(ToolUse(Looked(id_), "f", {}) for id_ in ids))


def tells(*ids: str) -> Message:
    return Message(Role.TOOL, tuple(ToolOutput(Looked(id_), "f", "x") for id_ in ids))


TWINS = (asks("a"), tells("a"), asks("a"))
MUCH: Mapping[str, Callable[[int], Sequence[Message]]] = {
    "one answer": lambda count: [asks(*map(str, range(count))), tells("0")],
    "one id in many": lambda count: [each for _ in range(count) for each in TWINS],
    "one id in one": lambda count: [asks(*"a" * count), tells(*"a" * count)],
    "lost": lambda count: [tells(*map(str, range(count)))],
}


@pytest.mark.parametrize("much", MUCH)
def test_twice_as_much_takes_twice_as_long_to_mend(much: str) -> None:
    def steps(count: int) -> int:
        broken = (ASKED, *MUCH[much](count))
        told = 0

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal told
            frame.f_trace_opcodes = True
            told += event == "opcode"
            return trace

        Looked.times = 0
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            repaired(broken)
        finally:
            sys.settrace(before)
        return told + Looked.times

    assert steps(200) < 2.2 * steps(100)
