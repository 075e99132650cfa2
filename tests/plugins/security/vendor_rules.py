"""What four vendors take for a conversation, as strict as their documentation.

Written from the vendors' own pages, and not from the dialects: OpenAI's API reference
("Create chat completion", "Create a model response", function calling), Anthropic's
Messages API and tool use pages, and Google's function calling guide. Each function
gives what it would refuse; nothing means that the request is taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CLAUDE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}|[a-zA-Z0-9_-]{1,64}")
CLAUDE_ID = re.compile(r"[a-zA-Z0-9_-]+")
CHAT_ID = 40
RESPONSES_ID = 64
Body = Mapping[str, Any]


def openai_chat(body: Body) -> Iterator[str]:
    """Every call is answered by tool messages right behind it, and no other is."""
    open_: set[str] = set()
    used: set[str] = set()
    for message in body["messages"]:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in open_:
                yield "a tool message answers no preceding tool_calls"
            open_.discard(message["tool_call_id"])
            if not isinstance(message["content"], str | list):
                yield "a tool message without content"
            continue
        if open_:
            yield f"tool_call_ids without response: {sorted(open_)}"
            open_ = set()
        if role == "assistant":
            yield from _chat_answer(message, used)
            open_ = {call["id"] for call in message.get("tool_calls", ())}
        elif role == "user":
            yield from _said(message["content"])
        elif role not in {"system", "developer"}:
            yield f"a message of {role}"
    if open_:
        yield "the last calls have no response"


def _chat_answer(message: Body, used: set[str]) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        yield "tool_calls is an empty array"
    if message.get("content") is None and not calls:
        yield "an assistant message without content or tool_calls"
    for call in calls or ():
        if not 1 <= len(call["id"]) <= CHAT_ID:
            yield f"a tool_call id of {len(call['id'])} characters"
        if call["id"] in used:
            yield "two tool_calls have one id"
        used.add(call["id"])
        yield from _function(call["function"], NAME)


def _function(function: Body, names: re.Pattern[str]) -> Iterator[str]:
    if not names.fullmatch(function["name"]):
        yield f"a function is called {function['name']!r}"
    try:
        arguments = json.loads(function["arguments"], parse_constant=_no_constant)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        yield "arguments are no JSON object"


def _no_constant(word: str) -> None:
    raise ValueError(word)


def _said(content: object) -> Iterator[str]:
    if not isinstance(content, str | list) or not content:
        yield "a user message without content"


def openai_responses(body: Body) -> Iterator[str]:
    """Each function_call has its function_call_output, and each of those its call."""
    called: set[str] = set()
    answered: set[str] = set()
    for item in body["input"]:
        kind = item["type"]
        if kind == "function_call":
            yield from _response_call(item, called)
        elif kind == "function_call_output":
            yield from _response_output(item["call_id"], called, answered)
        elif kind == "message":
            yield from _said(item["content"])
            if item["role"] == "assistant" and called - answered:
                yield "words stand between a call and its output"
        elif kind != "reasoning":
            yield f"an item of type {kind}"
    if called - answered:
        yield "no tool output found for function call"


def _response_call(item: Body, called: set[str]) -> Iterator[str]:
    if item["call_id"] in called:
        yield "two function_calls have one call_id"
    if not 1 <= len(item["call_id"]) <= RESPONSES_ID:
        yield "a call_id is too long"
    called.add(item["call_id"])
    yield from _function(item, NAME)


def _response_output(
    call_id: str, called: set[str], answered: set[str]
) -> Iterator[str]:
    if call_id not in called:
        yield "no tool call found for function call output"
    if call_id in answered:
        yield "a function call has two outputs"
    answered.add(call_id)


def anthropic(body: Body) -> Iterator[str]:
    """User first; tool_use is answered by the first blocks of the next message."""
    messages = body["messages"]
    used: set[str] = set()
    if not messages or messages[0]["role"] != "user":
        yield "the first message must use the user role"
    for place, message in enumerate(messages):
        blocks = message["content"]
        if place and messages[place - 1]["role"] == message["role"]:
            yield "roles must alternate"
        if not blocks:
            yield "all messages must have non-empty content"
        before = messages[place - 1]["content"] if place else ()
        yield from _claude_results(blocks, _ids(before))
        yield from _claude_blocks(blocks, used, message["role"])
    if messages and _ids(messages[-1]["content"]):
        yield "tool_use ids were found without tool_result blocks"


def _ids(blocks: Sequence[Body]) -> list[str]:
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def _claude_results(blocks: Sequence[Body], asked: Sequence[str]) -> Iterator[str]:
    results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
    if sorted(results) != sorted(asked):
        yield "tool_use and tool_result blocks do not pair"
    if any(b["type"] != "tool_result" for b in blocks[: len(results)]):
        yield "tool_result blocks must come first"


def _claude_blocks(blocks: Sequence[Body], used: set[str], role: str) -> Iterator[str]:
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            yield "text content blocks must contain non-whitespace text"
        if block["type"] == "tool_use":
            if role != "assistant":
                yield "tool_use in a user message"
            if block["id"] in used:
                yield "tool_use ids must be unique"
            used.add(block["id"])
            if not CLAUDE_ID.fullmatch(block["id"]):
                yield "a tool_use id has letters that are not taken"
            if not CLAUDE_NAME.fullmatch(block["name"]):
                yield "a tool_use name has letters that are not taken"
            if not _plain(block["input"]):
                yield "input is no JSON object"


def _plain(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return isinstance(value, dict)


def gemini(body: Body) -> Iterator[str]:
    """Turns alternate; a turn of calls has as many responses right behind it."""
    contents = body["contents"]
    if not contents or contents[0]["role"] != "user":
        yield "contents must begin with a user turn"
    for place, content in enumerate(contents):
        if place and contents[place - 1]["role"] == content["role"]:
            yield "turns must alternate between user and model"
        before = contents[place - 1]["parts"] if place else ()
        yield from _gemini_parts(content["parts"])
        yield from _gemini_responses(content["parts"], before)
    if contents and any("functionCall" in part for part in contents[-1]["parts"]):
        yield "the last function calls have no response"


def _gemini_parts(parts: Sequence[Body]) -> Iterator[str]:
    if not parts:
        yield "contents.parts must not be empty"
    for part in parts:
        if not set(part) - {"thoughtSignature"} or part.get("text") == "":
            yield "a part must have one initialized field"
        call = part.get("functionCall")
        if call and not (GEMINI_NAME.fullmatch(call["name"]) and _plain(call["args"])):
            yield "a function call cannot be read"


def _gemini_responses(parts: Sequence[Body], before: Sequence[Body]) -> Iterator[str]:
    responses = [p["functionResponse"] for p in parts if "functionResponse" in p]
    calls = [p["functionCall"] for p in before if "functionCall" in p]
    if len(calls) != len(responses):
        yield "function response parts must equal function call parts"
    if sorted(c["name"] for c in calls) != sorted(r["name"] for r in responses):
        yield "a function response has the name of no call"
    if not all(_plain(response["response"]) for response in responses):
        yield "a function response is no object"


RULES: Mapping[str, Callable[[Body], Iterator[str]]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
}
