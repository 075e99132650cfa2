"""The native Ollama dialect: one JSON document a line.

Source: Ollama API documentation, "Generate a chat completion".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agenthost import (
    ChatRequest,
    Delta,
    Endpoint,
    File,
    Finish,
    HttpRequest,
    Image,
    Message,
    ProviderError,
    Reasoning,
    Role,
    ToolDefinition,
    ToolOutput,
    Usage,
)

from .answers import (
    CallDraft,
    compact,
    count_of,
    objects_of,
    text_of,
)
from .capabilities import EFFORTS, Thinking, thinking_of
from .conversation import bearer, loop_start, unread
from .decoding import EventDecoder
from .faults import http_fault, stream_fault
from .framing import JsonLines
from .likelihood import scored
from .outgoing import post
from .quirks import Quirks, read_quirks
from .schema import OLLAMA, shape_schema
from .settings import TAKES, fitted

NAME = "ollama"
FINISHES = {"stop": Finish.STOP, "length": Finish.LENGTH}


@dataclass(frozen=True, slots=True)
class OllamaQuirks:
    """How a server, or a model on it, bends the dialect.

    Args:
        num_ctx: The context window to load a model with that has no row; without one
            the server cuts long prompts silently. 0 leaves it to the server.
        thinking: How a thinking budget is written: not at all, as a switch, or as
            one of three levels (which cannot be switched off).
    """

    num_ctx: int = 0
    thinking: Literal["none", "switch", "levels"] = "none"


PLAIN = Quirks(OllamaQuirks())


@dataclass(frozen=True, slots=True)
class Ollama:
    """Chat as an Ollama server speaks it."""

    quirks: Quirks[OllamaQuirks] = PLAIN
    name: str = NAME

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> Ollama:
        """Make the dialect of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(OllamaQuirks(), table))

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request."""
        quirks = self.quirks.of(request.model)
        request = fitted(request, endpoint, TAKES[NAME])
        body: dict[str, Any] = {
            "model": request.model,
            "messages": list(_messages(request)),
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        usual = Thinking(quirks.thinking, EFFORTS, "low")
        thinking = thinking_of(endpoint, usual)
        body.update(_thinking(request.thinking_budget, thinking))
        options = _options(request, quirks, endpoint)
        if options:
            body["options"] = options
        if request.response_format is not None:
            body["format"] = shape_schema(request.response_format, OLLAMA)
        if request.logprobs is not None:
            body["logprobs"] = True
            if request.logprobs:
                body["top_logprobs"] = request.logprobs
        body["stream"] = request.stream
        root = endpoint.base_url.rstrip("/").removesuffix("/v1")
        return post(endpoint, root + "/api/chat", bearer(endpoint), body)

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> OllamaDecoder:
        """Make the decoder of this request's answer."""
        return OllamaDecoder(request, endpoint)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _thinking(budget: int | None, thinking: Thinking) -> dict[str, Any]:
    if budget is None or thinking.kind == "none":
        return {}
    if thinking.kind == "switch":
        return {"think": budget > 0}
    return {"think": thinking.effort(budget) if budget else thinking.off}


def _options(
    request: ChatRequest, quirks: OllamaQuirks, endpoint: Endpoint
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    # As much as compaction counts on: what the server loads beyond is wasted, what it
    # loads less is cut off unseen.
    window = endpoint.model.context_window if endpoint.model else quirks.num_ctx
    if window:
        options["num_ctx"] = window
    if request.max_tokens is not None:
        options["num_predict"] = request.max_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.stop:
        options["stop"] = list(request.stop)
    if request.top_p is not None:
        options["top_p"] = request.top_p
    if request.seed is not None:
        options["seed"] = request.seed
    return options


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": shape_schema(tool.parameters, OLLAMA),
    }
    return {"type": "function", "function": function}


def _messages(request: ChatRequest) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": request.system}
    loop = loop_start(request.messages)
    for index, message in enumerate(request.messages):
        if message.role is Role.USER:
            yield _user(message)
        elif message.role is Role.ASSISTANT:
            yield _assistant(message, in_loop=index >= loop)
        else:
            yield from _tool_outputs(message)


def _user(message: Message) -> dict[str, Any]:
    unseen = [unread(part) for part in message.parts if isinstance(part, File)]
    text = "\n".join([message.text, *unseen])
    written: dict[str, Any] = {"role": "user", "content": text}
    images = [part.data for part in message.parts if isinstance(part, Image)]
    if images:
        written["images"] = images
    return written


def _assistant(message: Message, *, in_loop: bool) -> dict[str, Any]:
    written: dict[str, Any] = {"role": "assistant", "content": message.text}
    thoughts = [part.text for part in message.parts if isinstance(part, Reasoning)]
    if in_loop and any(thoughts):
        written["thinking"] = "".join(thoughts)
    if message.tool_uses:
        written["tool_calls"] = [
            {"function": {"name": use.name, "arguments": dict(use.arguments)}}
            for use in message.tool_uses
        ]
    return written


def _tool_outputs(message: Message) -> Iterator[dict[str, Any]]:
    for part in message.parts:
        if isinstance(part, ToolOutput):
            yield {"role": "tool", "content": part.text, "tool_name": part.name}


class OllamaDecoder(EventDecoder):
    """Reads one answer."""

    streams = JsonLines

    def _take(self, event: bytes) -> Iterable[Delta]:
        return () if self._done else self._payload(self._object(event))

    def _payload(self, payload: dict[str, Any]) -> Iterator[Delta]:
        if payload.get("error"):
            raise stream_fault(self._endpoint, payload)
        said = payload.get("message")
        if isinstance(said, dict):
            yield from self._said(said)
        yield from self._draft.score(scored(payload.get("logprobs")))
        if payload.get("done") is True:
            self._done = True
            # Older servers name no reason.
            self._draft.ends(str(payload.get("done_reason") or "stop"), FINISHES)
            self._draft.usage = read_usage(payload)
            yield self._draft.complete()

    def _said(self, said: Mapping[str, Any]) -> Iterator[Delta]:
        yield from self._draft.thought(text_of(said.get("thinking")))
        yield from self._draft.text(text_of(said.get("content")))
        for call in objects_of(said.get("tool_calls")):
            self._call(call)

    def _call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else compact(arguments)
        self._draft.begin(
            CallDraft(
                text_of(call.get("id")),
                text_of(function.get("name")),
                [] if arguments is None else [written],
            )
        )


def read_usage(payload: Mapping[str, Any]) -> Usage:
    """Read the counts of the last document."""
    return Usage(
        input_tokens=count_of(payload, "prompt_eval_count"),
        output_tokens=count_of(payload, "eval_count"),
    )
