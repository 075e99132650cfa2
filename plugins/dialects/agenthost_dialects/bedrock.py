"""The Bedrock Converse dialect, written: requests.

Source: Amazon Bedrock API reference, "Converse" and "ConverseStream".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from agenthost import (
    ChatRequest,
    Endpoint,
    HttpRequest,
    Image,
    Message,
    Part,
    ProviderError,
    Reasoning,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

from .answers import body_of
from .aws_signature import Unsigned, read_keys, region_of, sign
from .bedrock_decoder import NAME, BedrockDecoder
from .conversation import effort_of, wire_id
from .faults import http_fault
from .quirks import Quirks, read_quirks
from .schema import BEDROCK, shape_schema

LEAST_THINKING = 1024
# Parts of the world by the beginning of a region's name.
PARTS = (("us-gov-", "us-gov"), ("us-", "us"), ("eu-", "eu"), ("ap-", "apac"))
PROFILES = frozenset({"global", "us-gov", "us", "eu", "apac", "jp", "au", "ca"})
CACHE_POINT = {"cachePoint": {"type": "default"}}
# A conversation must open with the user; one cut by compaction may not.
OPENING = "(The conversation goes on.)"


@dataclass(frozen=True, slots=True)
class BedrockQuirks:
    """How a model bends the dialect.

    Args:
        temperature: Whether the model takes one.
        thinking: How a thinking budget is written: not at all, in tokens, or as
            adaptive thinking with an effort (both as Anthropic's models take it).
        cache: Whether the end of the system prompt is marked for the prompt cache. The
            tools stand before it, so that they are kept as well.
        profile: Whether the model is reached through an inference profile: of none,
            of the whole world, or of the region's part of it.
    """

    temperature: bool = True
    thinking: Literal["none", "budget", "adaptive"] = "none"
    profile: Literal["none", "global", "region"] = "none"
    cache: bool = False


PLAIN = Quirks(BedrockQuirks())


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Bedrock:
    """Converse, for every model that Bedrock serves.

    The key is a Bedrock API key, or ``<access key id>:<secret access key>`` with
    ``:<session token>`` for temporary ones, and then requests are signed.
    """

    quirks: Quirks[BedrockQuirks] = PLAIN
    name: str = NAME
    now: Callable[[], datetime] = _utc_now

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> Bedrock:
        """Make the dialect of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(BedrockQuirks(), table))

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request."""
        quirks = self.quirks.of(request.model)
        body: dict[str, Any] = {"messages": _messages(request.messages)}
        if request.system:
            marks = [CACHE_POINT] if quirks.cache else []
            body["system"] = [{"text": request.system}, *marks]
        tools = _tools(request)
        if tools:
            body["toolConfig"] = {"tools": tools}
        body.update(_options(request, quirks))
        verb = "converse-stream" if request.stream else "converse"
        model = quote(_profiled(request.model, quirks, endpoint), safe="")
        url = f"{endpoint.base_url.rstrip('/')}/model/{model}/{verb}"
        return self._authorised(url, body_of(body), endpoint)

    def _authorised(self, url: str, body: bytes, endpoint: Endpoint) -> HttpRequest:
        headers = {"Content-Type": "application/json"}
        if endpoint.key is not None:
            key = endpoint.key.reveal()
            keys = read_keys(key)
            if keys is None:
                headers["Authorization"] = f"Bearer {key}"
            else:
                unsigned = Unsigned("POST", url, headers, body)
                headers = sign(unsigned, keys, "bedrock", self.now())
        return HttpRequest("POST", url, headers, body)

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> BedrockDecoder:
        """Make the decoder of this request's answer."""
        return BedrockDecoder(request, endpoint)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        return http_fault(endpoint, status, headers, body)


def _profiled(model: str, quirks: BedrockQuirks, endpoint: Endpoint) -> str:
    """Name the inference profile of a model that is not served by its plain id."""
    if quirks.profile == "none" or model.partition(".")[0] in PROFILES:
        return model
    if quirks.profile == "global":
        return f"global.{model}"
    region = region_of(urlsplit(endpoint.base_url).netloc)
    part = next((name for start, name in PARTS if region.startswith(start)), "us")
    return f"{part}.{model}"


def _options(request: ChatRequest, quirks: BedrockQuirks) -> dict[str, Any]:
    options: dict[str, Any] = {}
    thinking = _thinking(request, quirks)
    limits: dict[str, Any] = {}
    if request.max_tokens is not None:
        limits["maxTokens"] = request.max_tokens
    if request.temperature is not None and quirks.temperature and not thinking:
        limits["temperature"] = request.temperature
    if limits:
        options["inferenceConfig"] = limits
    if thinking:
        options["additionalModelRequestFields"] = thinking
    return options


def _thinking(request: ChatRequest, quirks: BedrockQuirks) -> dict[str, Any]:
    budget = request.thinking_budget
    if not budget or quirks.thinking == "none":
        return {}
    if quirks.thinking == "adaptive":
        effort = {"effort": effort_of(budget)}
        return {"thinking": {"type": "adaptive"}, "output_config": effort}
    # Thinking is part of the answer's limit and must leave room for words.
    tokens = max(budget, LEAST_THINKING)
    if request.max_tokens is not None:
        tokens = min(tokens, request.max_tokens - 1)
    if tokens < LEAST_THINKING:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _tools(request: ChatRequest) -> list[dict[str, Any]]:
    """Write the tools; the service wants those a conversation used, offered or not."""
    if request.tools:
        return [_tool(tool) for tool in request.tools]
    used = {use.name for message in request.messages for use in message.tool_uses}
    return [_tool(ToolDefinition(name, name, {})) for name in sorted(used)]


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    schema = shape_schema(tool.parameters, BEDROCK)
    spec: dict[str, Any] = {"name": tool.name, "inputSchema": {"json": schema}}
    if tool.description:
        spec["description"] = tool.description
    return {"toolSpec": spec}


def _messages(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = [block for part in message.parts for block in _blocks(part)]
        if not blocks:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["content"].extend(blocks)
        else:
            written.append({"role": role, "content": blocks})
    if written and written[0]["role"] != "user":
        written.insert(0, {"role": "user", "content": [{"text": OPENING}]})
    return written


def _blocks(part: Part) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        # The API refuses a text block without words.
        if part.text.strip():
            yield {"text": part.text}
    elif isinstance(part, Image):
        kind = part.media_type.partition("/")[2]
        yield {"image": {"format": kind, "source": {"bytes": part.data}}}
    elif isinstance(part, Reasoning):
        yield from _thought(part)
    else:
        yield _call(part) if isinstance(part, ToolUse) else _output(part)


def _thought(part: Reasoning) -> Iterator[dict[str, Any]]:
    """Give back thinking as it came; what another vendor thought stays away."""
    own = part.opaque.get(NAME, {})
    if "redacted" in own:
        yield {"reasoningContent": {"redactedContent": own["redacted"]}}
    elif "signature" in own:
        thought = {"text": part.text, "signature": own["signature"]}
        yield {"reasoningContent": {"reasoningText": thought}}


def _call(use: ToolUse) -> dict[str, Any]:
    call = {"toolUseId": wire_id(use.id), "name": use.name}
    return {"toolUse": {**call, "input": dict(use.arguments)}}


def _output(output: ToolOutput) -> dict[str, Any]:
    result: dict[str, Any] = {
        "toolUseId": wire_id(output.id),
        "content": [{"text": output.text}],
    }
    if output.is_error:
        result["status"] = "error"
    return {"toolResult": result}
