"""The built-in provider: no model, no key, no network, yet real tool calls.

It understands a handful of plain requests, so that a fresh machine shows a whole
agent at work, and says what it is to everything else.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import field

from agenthost import (
    ChatRequest,
    Completion,
    Delta,
    EmbedderSpec,
    Finish,
    Image,
    Message,
    ModelCall,
    Part,
    ProviderSpec,
    Reasoning,
    Role,
    Text,
    TextChunk,
    ToolOutput,
    ToolUse,
    Usage,
    hookimpl,
)
from agenthost_values.value_class import value_class

from .catalogue import load_facts

CHARS_A_TOKEN = 4
SUMMARY_PREFIX = "Summarize this conversation:"
SUMMARY_LINES = 6
SUMMARY_WIDTH = 120

INTRODUCTION = """\
I am agenthost's built-in helper: a small program, not a language model. I understand \
these requests: list files in <dir>, read <file>, write <text> to <file>, \
remember <key> is <value>, recall <key>, calculate <expression>, fetch <url>, \
ask <agent> to <request>, run <command>.
For a real model, set OPENAI_API_KEY or ANTHROPIC_API_KEY, run Ollama on this \
machine, or add [providers.<slug>] to config.toml, and restart the daemon."""

REFUSAL = """\
I would use the tool {tool} for this, but this agent does not have it; \
add {tool} to its tools."""


@value_class
class Command:
    """A request it understands: named groups of the pattern are tool arguments.

    ``answer`` is filled with the arguments and ``result``.
    """

    pattern: re.Pattern[str]
    tool: str
    answer: str
    constants: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, request: str) -> dict[str, str] | None:
        """Read the request; None when it is another one."""
        match = self.pattern.fullmatch(request)
        return {**self.constants, **match.groupdict()} if match else None


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(r"(?:please\s+)?" + pattern, re.IGNORECASE | re.DOTALL)


COMMANDS = (
    Command(
        _words(r"list files"),
        "file_list",
        "Here are the files:\n{result}",
        {"path": "."},
    ),
    Command(
        _words(r"list files in (?P<path>.+)"),
        "file_list",
        "Here are the files in {path}:\n{result}",
    ),
    Command(
        _words(r"read (?P<path>.+)"), "file_read", "Here is what {path} says:\n{result}"
    ),
    Command(
        _words(r"write (?P<content>.+) to (?P<path>.+?)"),
        "file_write",
        "I wrote to {path}.\n{result}",
    ),
    Command(
        _words(r"remember (?P<key>\S+) is (?P<value>.+)"),
        "kv_set",
        "I will remember that {key} is {value}.",
    ),
    Command(_words(r"recall (?P<key>\S+)"), "kv_get", "{key} is {result}"),
    Command(
        _words(r"calculate (?P<expression>.+)"),
        "calculate",
        "{expression} = {result}",
    ),
    Command(_words(r"fetch (?P<url>\S+)"), "web_fetch", "{url} says:\n{result}"),
    Command(
        _words(r"ask (?P<agent_id>.+?) to (?P<message>.+)"),
        "agent_call",
        "{agent_id} answers:\n{result}",
    ),
    Command(
        _words(r"run (?P<command>.+)"), "shell_exec", "{command} printed:\n{result}"
    ),
)


@value_class
class Offline:
    """Answers by rules; the same conversation always gets the same answer."""

    name: str = "offline"

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        """Yield the answer word by word, the Completion last."""
        request = call.request
        text, use = answer(request)
        text, finish = _limited(text, request.max_tokens)
        for word in re.findall(r"\S+\s*|\s+", text):
            yield TextChunk(word)
            # A turn that is stopped ends here, between two words.
            await asyncio.sleep(0)
        parts: list[Part] = [Text(text)] if text else []
        if use is not None and finish is Finish.STOP:
            parts.append(use)
            finish = Finish.TOOL_USE
        message = Message(Role.ASSISTANT, tuple(parts))
        yield Completion(message, finish, usage(request, message))


def answer(request: ChatRequest) -> tuple[str, ToolUse | None]:
    """Decide what to say, and which tool to call."""
    last = request.messages[-1] if request.messages else None
    if last is not None and last.role is Role.TOOL:
        return _report(request.messages), None
    if last is None or last.role is not Role.USER:
        return INTRODUCTION, None
    # Files that came with the request stand behind its words.
    words = (part.text for part in last.parts if isinstance(part, Text))
    said = next(words, "").strip()
    if said.startswith(SUMMARY_PREFIX):
        return summary(said.removeprefix(SUMMARY_PREFIX)), None
    if not said and any(isinstance(part, Image) for part in last.parts):
        return "I cannot see pictures.\n" + INTRODUCTION, None
    return _obey(said, request)


def summary(conversation: str) -> str:
    """Pick the first and the last lines of a conversation."""
    lines = [line.strip() for line in conversation.splitlines() if line.strip()]
    if len(lines) > SUMMARY_LINES:
        lines = [lines[0], "...", *lines[2 - SUMMARY_LINES :]]
    short = (_shorten(line) for line in lines)
    return "Summary of the conversation so far:\n" + "\n".join(short)


def usage(request: ChatRequest, message: Message) -> Usage:
    """Estimate tokens: four characters each, every kind of part included."""
    tools = sum(
        len(tool.name) + len(tool.description) + len(json.dumps(dict(tool.parameters)))
        for tool in request.tools
    )
    asked = len(request.system) + tools + _size(request.messages)
    return Usage(_tokens(asked), _tokens(_size([message])))


def _obey(said: str, request: ChatRequest) -> tuple[str, ToolUse | None]:
    granted = {tool.name for tool in request.tools}
    for command in COMMANDS:
        arguments = command.arguments(said)
        if arguments is None:
            continue
        if command.tool not in granted:
            return REFUSAL.format(tool=command.tool), None
        return "", ToolUse(f"call_{_calls(request) + 1}", command.tool, arguments)
    return INTRODUCTION, None


def _calls(request: ChatRequest) -> int:
    return sum(len(message.tool_uses) for message in request.messages)


def _report(messages: tuple[Message, ...]) -> str:
    uses = {use.id: use for message in messages for use in message.tool_uses}
    outputs = (part for part in messages[-1].parts if isinstance(part, ToolOutput))
    return "\n".join(_tell(output, uses.get(output.id)) for output in outputs)


def _tell(output: ToolOutput, use: ToolUse | None) -> str:
    if output.is_error:
        return f"That did not work: {output.text}"
    arguments = dict(use.arguments) if use else {}
    for command in COMMANDS:
        wanted = {*command.pattern.groupindex, *command.constants}
        exact = all(arguments.get(k) == v for k, v in command.constants.items())
        if command.tool == output.name and wanted == set(arguments) and exact:
            return command.answer.format(**arguments, result=output.text)
    return f"{output.name} answered:\n{output.text}"


def _limited(text: str, max_tokens: int | None) -> tuple[str, Finish]:
    if max_tokens is None or len(text) <= max_tokens * CHARS_A_TOKEN:
        return text, Finish.STOP
    return text[: max_tokens * CHARS_A_TOKEN], Finish.LENGTH


def _shorten(line: str) -> str:
    return line if len(line) <= SUMMARY_WIDTH else line[:SUMMARY_WIDTH] + "..."


def _tokens(characters: int) -> int:
    return -(-characters // CHARS_A_TOKEN)


def _size(messages: Iterable[Message]) -> int:
    return sum(_part_size(part) for message in messages for part in message.parts)


def _part_size(part: Part) -> int:
    if isinstance(part, Text | Reasoning | ToolOutput):
        return len(part.text)
    if isinstance(part, ToolUse):
        return len(part.name) + len(json.dumps(dict(part.arguments)))
    return 0


@hookimpl
def register_provider() -> Iterable[ProviderSpec]:
    """Offer the built-in provider."""
    yield ProviderSpec(load_facts("offline"), Offline())


@hookimpl
def register_embedder() -> Iterable[EmbedderSpec]:
    """Offer vectors of hashed words."""
    from .hashed_words import embed

    yield EmbedderSpec("offline", embed)
