"""The Bedrock Converse dialect, written: requests.

Source: Amazon Bedrock API reference, "Converse" and "ConverseStream".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from agenthost import (
    ChatRequest,
    Endpoint,
    File,
    HttpRequest,
    Image,
    JsonObject,
    Part,
    ProviderError,
    ProviderFault,
    Reasoning,
    Role,
    Text,
    ToolDefinition,
    ToolOutput,
    ToolUse,
)

from .answers import body_of, compact
from .aws_signature import Unsigned, read_keys, region_of, sign
from .bedrock_decoder import NAME, BedrockDecoder
from .capabilities import (
    Thinking,
    keeps_an_hour,
    marks_cache,
    places_to_mark,
    samples,
    thinking_of,
)
from .conversation import begun_elsewhere, is_document, own_of, unread, wire_id
from .faults import http_fault
from .forms import NAME as FORM
from .forms import closed_form
from .quirks import Quirks, read_quirks
from .schema import BEDROCK, shape_schema
from .settings import CHOICES, TAKES, fitted

LEAST_THINKING = 1024
# Parts of the world by the beginning of a region's name.
PARTS = (("us-gov-", "us-gov"), ("us-", "us"), ("eu-", "eu"), ("ap-", "apac"))
PROFILES = frozenset({"global", "us-gov", "us", "eu", "apac", "jp", "au", "ca"})
MISWRITTEN = (
    "the key is no API key, for it holds a colon, and no access keys: write "
    "<access key id>:<secret access key>, the id in 16 or more capitals and digits"
)
CACHE_POINT = {"cachePoint": {"type": "default"}}
CACHED_AN_HOUR = {"cachePoint": {"type": "default", "ttl": "1h"}}
# A conversation must open with the user; one cut by compaction may not.
OPENING = "(The conversation goes on.)"


@dataclass(frozen=True, slots=True)
class BedrockQuirks:
    """How a model bends the dialect.

    Args:
        temperature: Whether the model takes one.
        thinking: How a thinking budget is written: not at all, in tokens or as
            adaptive thinking with an effort (both as Anthropic's models take it), as
            ``reasoning_effort``, or as a ``reasoningConfig`` (Amazon's own models).
        cache: Whether the ends of the system prompt and of the conversation are marked
            for the prompt cache. The tools stand before, so that they are kept as well.
        profile: Whether the model is reached through an inference profile: of none,
            of the whole world, or of the region's part of it.
    """

    temperature: bool = True
    thinking: Literal["none", "budget", "adaptive", "effort", "config"] = "none"
    profile: Literal["none", "global", "region"] = "none"
    cache: bool = False
    result_images: bool = False


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
        sampled = samples(endpoint, usual=quirks.temperature)
        request = fitted(request, endpoint, TAKES[NAME], samples=sampled)
        body: dict[str, Any] = {"messages": _messages(request, quirks, endpoint)}
        if request.system:
            body["system"] = [{"text": request.system}]
        if marks_cache(endpoint, usual=quirks.cache):
            _mark(body, CACHED_AN_HOUR if keeps_an_hour(endpoint) else CACHE_POINT)
        tools = _tools(request)
        if tools:
            body["toolConfig"] = {"tools": tools, **_choice(request.tool_choice)}
        body.update(_options(request, quirks, endpoint))
        verb = "converse-stream" if request.stream else "converse"
        model = quote(_profiled(request.model, quirks, endpoint), safe="")
        url = f"{endpoint.base_url.rstrip('/')}/model/{model}/{verb}"
        return self._authorised(url, body_of(body), endpoint)

    def _authorised(self, url: str, body: bytes, endpoint: Endpoint) -> HttpRequest:
        headers = {"Content-Type": "application/json"}
        if endpoint.key is not None:
            key = endpoint.key.reveal()
            keys = read_keys(key)
            if keys is None and ":" in key:
                raise ProviderError(ProviderFault.AUTH, endpoint.provider, MISWRITTEN)
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


def _options(
    request: ChatRequest, quirks: BedrockQuirks, endpoint: Endpoint
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    thinking = thinking_of(endpoint, Thinking(quirks.thinking))
    fields = _thinking(request, thinking, endpoint)
    limits: dict[str, Any] = {}
    if request.max_tokens is not None:
        limits["maxTokens"] = request.max_tokens
    wanted = request.temperature is not None and not (
        fields and request.thinking_budget
    )
    if wanted and samples(endpoint, usual=quirks.temperature):
        limits["temperature"] = request.temperature
    if request.top_p is not None and not (fields and request.thinking_budget):
        limits["topP"] = request.top_p
    if request.stop:
        limits["stopSequences"] = list(request.stop)
    if limits:
        options["inferenceConfig"] = limits
    if fields:
        options["additionalModelRequestFields"] = fields
    if request.response_format is not None:
        options["outputConfig"] = {"textFormat": _form(request.response_format)}
    return options


def _form(schema: JsonObject) -> dict[str, Any]:
    written = {"name": FORM, "schema": compact(closed_form(schema))}
    return {"type": "json_schema", "structure": {"jsonSchema": written}}


def _choice(choice: str) -> dict[str, Any]:
    if not choice:
        return {}
    if choice not in CHOICES:
        return {"toolChoice": {"tool": {"name": choice}}}
    return {"toolChoice": {"any" if choice == "required" else choice: {}}}


def _thinking(
    request: ChatRequest, thinking: Thinking, endpoint: Endpoint
) -> dict[str, Any]:
    budget = request.thinking_budget
    if budget is None or thinking.kind == "none":
        return {}
    if budget == 0:
        return _unthinking(thinking)
    if thinking.kind == "budget":
        return _tokens(budget, request, endpoint)
    effort = thinking.effort(budget)
    if thinking.kind == "effort":
        return {"reasoning_effort": effort}
    if thinking.kind == "config":
        return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}


def _tokens(budget: int, request: ChatRequest, endpoint: Endpoint) -> dict[str, Any]:
    # Thinking is part of the answer's limit and must leave room for words.
    tokens = max(budget, LEAST_THINKING)
    if request.max_tokens is not None:
        tokens = min(tokens, request.max_tokens - 1)
    if tokens < LEAST_THINKING or begun_elsewhere(NAME, request, endpoint):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _unthinking(thinking: Thinking) -> dict[str, Any]:
    """Ask for no thinking, or for as little as the model can do with."""
    off = thinking.off
    if not off:
        return {}
    if thinking.kind == "effort":
        return {"reasoning_effort": off}
    if thinking.kind == "config":
        return {"reasoningConfig": {"type": off}}
    if off in thinking.efforts:
        return {"output_config": {"effort": off}}
    return {"thinking": {"type": off}}


def _mark(body: Mapping[str, Any], point: dict[str, Any]) -> None:
    """Put a point behind what is kept: three, of the four that the service takes."""
    if "system" in body:
        body["system"].append(point)
    messages = body["messages"]
    for place in places_to_mark(messages):
        messages[place]["content"].append(point)


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


def _messages(
    request: ChatRequest, quirks: BedrockQuirks, endpoint: Endpoint
) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    for message in request.messages:
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = [
            block
            for part in message.parts
            for block in (
                _thought(part, own_of(part, NAME, request, endpoint))
                if isinstance(part, Reasoning)
                else _blocks(part, quirks)
            )
        ]
        if not blocks:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["content"].extend(blocks)
        else:
            written.append({"role": role, "content": blocks})
    if written and written[0]["role"] != "user":
        written.insert(0, {"role": "user", "content": [{"text": OPENING}]})
    return written


def _blocks(part: Part, quirks: BedrockQuirks) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        # The API refuses a text block without words.
        if part.text.strip():
            yield {"text": part.text}
    elif isinstance(part, Image):
        yield _image(part)
    elif isinstance(part, File):
        yield from _document(part)
    elif isinstance(part, ToolUse):
        yield _call(part)
    elif isinstance(part, ToolOutput):
        yield _output(part, quirks)


def _image(image: Image) -> dict[str, Any]:
    kind = image.media_type.partition("/")[2]
    return {"image": {"format": kind, "source": {"bytes": image.data}}}


def _document(file: File) -> Iterator[dict[str, Any]]:
    """Write a document, and its name before it: the API refuses one without words."""
    if not is_document(file):
        yield {"text": unread(file)}
        return
    yield {"text": f"[file {file.name}]"}
    # It takes few signs in a name, and wants no two documents of one name.
    name = hashlib.sha256(file.data.encode()).hexdigest()[:24]
    yield {"document": {"format": "pdf", "name": name, "source": {"bytes": file.data}}}


def _thought(part: Reasoning, own: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give back thinking as it came; what another model thought stays away."""
    if "redacted" in own:
        yield {"reasoningContent": {"redactedContent": own["redacted"]}}
    elif "signature" in own:
        thought = {"text": part.text, "signature": own["signature"]}
        yield {"reasoningContent": {"reasoningText": thought}}


def _call(use: ToolUse) -> dict[str, Any]:
    call = {"toolUseId": wire_id(use.id), "name": use.name}
    return {"toolUse": {**call, "input": dict(use.arguments)}}


def _output(output: ToolOutput, quirks: BedrockQuirks) -> dict[str, Any]:
    content = [{"text": output.text}]
    result: dict[str, Any] = {"toolUseId": wire_id(output.id), "content": content}
    if output.is_error:
        result["status"] = "error"
    elif quirks.result_images:
        content += map(_image, output.images)
    return {"toolResult": result}
