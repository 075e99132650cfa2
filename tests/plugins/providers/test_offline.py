"""The built-in provider understands what it says it does, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from agenthost import (
    ChatRequest,
    Completion,
    Delta,
    Endpoint,
    Finish,
    Image,
    Message,
    ModelCall,
    Role,
    Text,
    TextChunk,
    ToolDefinition,
    ToolOutput,
)
from agenthost.testing import installed_exchange
from agenthost_providers.offline import COMMANDS, SUMMARY_PREFIX, register_provider

TOOLS = tuple(
    ToolDefinition(name, "", {"type": "object"})
    for name in sorted({command.tool for command in COMMANDS})
)
(SPEC,) = register_provider()


async def deltas(
    *messages: Message,
    tools: Sequence[ToolDefinition] = TOOLS,
    max_tokens: int | None = None,
) -> list[Delta]:
    """Ask it, without any network."""
    request = ChatRequest("offline", "", messages, tuple(tools), max_tokens)
    transport = httpx.MockTransport(
        lambda _: pytest.fail("it must not use the network")
    )
    async with httpx.AsyncClient(transport=transport) as http:
        exchange = installed_exchange()
        call = ModelCall(request, Endpoint("offline", ""), http, exchange)
        return [delta async for delta in exchange.open(SPEC, call)]


async def ask(
    *messages: Message,
    tools: Sequence[ToolDefinition] = TOOLS,
    max_tokens: int | None = None,
) -> Completion:
    """Ask it and return the Completion."""
    last = (await deltas(*messages, tools=tools, max_tokens=max_tokens))[-1]
    assert isinstance(last, Completion)
    return last


def user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


@pytest.mark.parametrize(
    ("said", "tool", "arguments"),
    [
        ("list files", "file_list", {"path": "."}),
        ("Please list files in docs/a b", "file_list", {"path": "docs/a b"}),
        ("read notes.txt", "file_read", {"path": "notes.txt"}),
        ("READ Notes.TXT", "file_read", {"path": "Notes.TXT"}),
        (
            "write back to work to day.txt",
            "file_write",
            {"path": "day.txt", "content": "back to work"},
        ),
        ("write a\nb to c d.txt", "file_write", {"path": "c d.txt", "content": "a\nb"}),
        ("remember sky is what it is", "kv_set", {"key": "sky", "value": "what it is"}),
        ("recall sky", "kv_get", {"key": "sky"}),
        ("calculate 2 + 2", "calculate", {"expression": "2 + 2"}),
        ("fetch http://a/b", "web_fetch", {"url": "http://a/b"}),
        (
            "ask helper to go to bed",
            "agent_call",
            {"agent_id": "helper", "message": "go to bed"},
        ),
        ("run ls -l", "shell_exec", {"command": "ls -l"}),
    ],
)
async def test_a_request_becomes_its_tool_call(
    said: str, tool: str, arguments: dict[str, Any]
) -> None:
    whole = await ask(user(said))
    (use,) = whole.message.tool_uses
    assert whole.finish is Finish.TOOL_USE
    assert (use.name, use.arguments) == (tool, arguments)
    assert use.id


async def test_without_the_tool_it_says_so() -> None:
    whole = await ask(user("run ls"), tools=())
    assert whole.finish is Finish.STOP
    assert "shell_exec" in whole.message.text
    assert "does not have it" in whole.message.text


@pytest.mark.parametrize(
    ("said", "result", "answer"),
    [
        ("list files in docs", "a.md", "Here are the files in docs:\na.md"),
        ("list files", "a.md", "Here are the files:\na.md"),
        ("calculate 6*7", "42", "6*7 = 42"),
        ("recall {result}", "{key}", "{result} is {key}"),
    ],
)
async def test_a_result_is_told_in_plain_words(
    said: str, result: str, answer: str
) -> None:
    first = await ask(user(said))
    (use,) = first.message.tool_uses
    output = Message(Role.TOOL, (ToolOutput(use.id, use.name, result),))
    whole = await ask(user(said), first.message, output)
    assert whole.message.text == answer


async def test_a_failed_tool_is_not_told_as_success() -> None:
    first = await ask(user("read a"))
    (use,) = first.message.tool_uses
    output = ToolOutput(use.id, use.name, "no such file", is_error=True)
    whole = await ask(user("read a"), first.message, Message(Role.TOOL, (output,)))
    assert whole.message.text == "That did not work: no such file"


async def test_ids_stay_unique_over_turns() -> None:
    first = await ask(user("list files"))
    second = await ask(user("list files"), first.message, user("list files"))
    assert first.message.tool_uses[0].id != second.message.tool_uses[0].id


@pytest.mark.parametrize("said", ["hello", "", "remember nothing", "listfiles"])
async def test_anything_else_is_told_what_it_is(said: str) -> None:
    text = (await ask(user(said))).message.text
    for word in ("not a language model", "OPENAI_API_KEY", "Ollama", "[providers."):
        assert word in text


async def test_the_answer_comes_in_words() -> None:
    found = await deltas(user("hello"))
    words = [delta.text for delta in found if isinstance(delta, TextChunk)]
    last = found[-1]
    assert isinstance(last, Completion)
    assert len(words) > 20
    assert "".join(words) == last.message.text


async def test_it_is_deterministic() -> None:
    assert await deltas(user("list files")) == await deltas(user("list files"))
    assert await deltas(user("hello")) == await deltas(user("hello"))


async def test_an_image_with_words_is_ignored() -> None:
    picture = Image("image/png", "iVBORw0=")
    whole = await ask(Message(Role.USER, (picture, Text("calculate 1+1"))))
    assert whole.message.tool_uses[0].name == "calculate"
    alone = await ask(Message(Role.USER, (picture,)))
    assert alone.message.text.startswith("I cannot see pictures.")


async def test_files_behind_words_are_no_part_of_the_request() -> None:
    whole = await ask(Message(Role.USER, (Text("calculate 1+1"), Text("\n[file a]"))))
    assert whole.message.tool_uses[0].arguments == {"expression": "1+1"}


async def test_a_summary_is_short_and_made_of_what_was_said() -> None:
    lines = [f"user: line {n} " + "x" * 300 for n in range(100)]
    whole = await ask(user(SUMMARY_PREFIX + "\n" + "\n".join(lines)))
    assert "line 0" in whole.message.text
    assert "line 99" in whole.message.text
    assert len(whole.message.text) < 1000


async def test_tokens_are_four_characters_each() -> None:
    whole = await ask(user("12345678"), tools=())
    assert whole.usage.input_tokens == 2
    assert whole.usage.output_tokens == -(-len(whole.message.text) // 4)


async def test_the_limit_is_kept() -> None:
    whole = await ask(user("hello"), max_tokens=5)
    assert whole.finish is Finish.LENGTH
    assert len(whole.message.text) == 20


async def test_without_messages_it_still_answers() -> None:
    assert (await ask()).message.text
    assert (await ask(Message(Role.ASSISTANT, (Text("hm"),)))).message.text
