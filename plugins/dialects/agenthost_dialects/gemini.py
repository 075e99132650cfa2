"""The Gemini dialect (generateContent), written: requests.

Source: Gemini API reference, "Generating content", and its guides on function calling,
thinking and thought signatures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from agenthost import (
    ChatRequest,
    Endpoint,
    File,
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

from .capabilities import EFFORTS, Thinking, samples, thinking_of
from .conversation import is_document, loop_start, own_of, unread
from .faults import http_fault
from .gemini_decoder import NAME, GeminiDecoder
from .outgoing import keyed, post
from .quirks import Quirks, read_quirks
from .schema import GEMINI, shape_schema
from .settings import CHOICES, TAKES, fitted

# A conversation must open with the user; one cut by compaction may not.
OPENING = "(The conversation goes on.)"
# What the vendor documents for calls that another model made.
UNSIGNED = "skip_thought_signature_validator"
KEY_HEADER = {"x-goog-api-key": "{key}"}


@dataclass(frozen=True, slots=True)
class GeminiQuirks:
    """How a model bends the dialect.

    Args:
        thinking: How a thinking budget is written: not at all, in tokens, or as one
            of three levels (which cannot be switched off).
        thinking_range: The fewest and the most tokens a model may think.
        sign_calls: Whether the first call of a step must bring a signature, also when
            another model made it.
        result_images: Whether results of tools may bring pictures.
    """

    thinking: Literal["none", "budget", "levels"] = "levels"
    thinking_range: tuple[int, int] = (0, 24_576)
    sign_calls: bool = True
    result_images: bool = True


PLAIN = Quirks(GeminiQuirks())


@dataclass(frozen=True, slots=True)
class Gemini:
    """Content, as Google's Gemini API generates it."""

    quirks: Quirks[GeminiQuirks] = PLAIN
    name: str = NAME

    @classmethod
    def from_quirks(cls, table: Mapping[str, Any]) -> Gemini:
        """Make the dialect of a quirks table.

        Raises:
            InvalidInput: A quirk is not known, or its value is of another type.
        """
        return cls(read_quirks(GeminiQuirks(), table))

    def encode(self, request: ChatRequest, endpoint: Endpoint) -> HttpRequest:
        """Write the request."""
        quirks = self.quirks.of(request.model)
        sampled = samples(endpoint, usual=True)
        request = fitted(request, endpoint, TAKES[NAME], samples=sampled)
        body: dict[str, Any] = {}
        if request.system:
            body["systemInstruction"] = {"parts": [{"text": request.system}]}
        if request.tools:
            tools = [_tool(tool) for tool in request.tools]
            body["tools"] = [{"functionDeclarations": tools}]
        if request.tool_choice:
            choice = _choice(request.tool_choice)
            body["toolConfig"] = {"functionCallingConfig": choice}
        body["contents"] = _contents(request, quirks, endpoint)
        options = _options(request, quirks, endpoint)
        if options:
            body["generationConfig"] = options
        return post(endpoint, _url(request, endpoint), _headers(endpoint), body)

    def decoder(self, request: ChatRequest, endpoint: Endpoint) -> GeminiDecoder:
        """Make the decoder of this request's answer."""
        return GeminiDecoder(request, endpoint)

    def fault(
        self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
    ) -> ProviderError:
        """Name the error of an answer whose status is not 2xx."""
        error = http_fault(endpoint, status, headers, body)
        if error.retry_after is None:
            error.retry_after = _retry_delay(body)
        return error


def _url(request: ChatRequest, endpoint: Endpoint) -> str:
    verb = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    return f"{models_at(endpoint)}/{quote(request.model, safe='')}:{verb}"


def models_at(endpoint: Endpoint) -> str:
    """Find where the models are; on Vertex, a publisher stands before them."""
    root = endpoint.base_url.rstrip("/").removesuffix("/v1beta")
    return f"{root}/models" if "/publishers/" in root else f"{root}/v1beta/models"


def _headers(endpoint: Endpoint) -> dict[str, str]:
    return {"Content-Type": "application/json", **keyed(endpoint, KEY_HEADER)}


def _retry_delay(body: bytes) -> float | None:
    """Read the wait that Google writes into the body, such as ``7.5s``."""
    try:
        details = json.loads(body)["error"]["details"]
        delays = [d["retryDelay"] for d in details if "retryDelay" in d]
        return max(0.0, float(delays[0].removesuffix("s")))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


def _options(
    request: ChatRequest, quirks: GeminiQuirks, endpoint: Endpoint
) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if request.max_tokens is not None:
        options["maxOutputTokens"] = request.max_tokens
    if request.temperature is not None and samples(endpoint, usual=True):
        options["temperature"] = request.temperature
    options.update(_settings(request))
    if request.thinking_budget is not None:
        usual = Thinking(quirks.thinking, EFFORTS, "low")
        thinking = thinking_of(endpoint, usual)
        written = _thinking(request.thinking_budget, thinking, quirks)
        options.update({"thinkingConfig": written} if written else {})
    return options


def _settings(request: ChatRequest) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if request.stop:
        written["stopSequences"] = list(request.stop)
    if request.top_p is not None:
        written["topP"] = request.top_p
    if request.seed is not None:
        written["seed"] = request.seed
    if request.logprobs is not None:
        written["responseLogprobs"] = True
        if request.logprobs:
            written["logprobs"] = request.logprobs
    if request.response_format is not None:
        written["responseMimeType"] = "application/json"
        written["responseJsonSchema"] = shape_schema(request.response_format, GEMINI)
    return written


def _choice(choice: str) -> dict[str, Any]:
    if choice in CHOICES:
        return {"mode": "ANY" if choice == "required" else choice.upper()}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def _thinking(budget: int, thinking: Thinking, quirks: GeminiQuirks) -> dict[str, Any]:
    if thinking.kind == "budget":
        least, most = quirks.thinking_range
        tokens = min(max(budget, least), most)
        return {"includeThoughts": budget > 0, "thinkingBudget": tokens}
    level = thinking.effort(budget) if budget else thinking.off
    if thinking.kind == "none" or not level:
        return {}
    return {"includeThoughts": budget > 0, "thinkingLevel": level.upper()}


def _tool(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": shape_schema(tool.parameters, GEMINI),
    }


def _contents(
    request: ChatRequest, quirks: GeminiQuirks, endpoint: Endpoint
) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    loop = loop_start(request.messages)
    writer = _Writer(request, quirks, endpoint)
    for index, message in enumerate(request.messages):
        role = "model" if message.role is Role.ASSISTANT else "user"
        parts = writer.parts(message, sign=quirks.sign_calls and index >= loop)
        if not parts:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["parts"].extend(parts)
        else:
            written.append({"role": role, "parts": parts})
    if written and written[0]["role"] != "user":
        written.insert(0, {"role": "user", "parts": [{"text": OPENING}]})
    return written


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the messages of one request."""

    request: ChatRequest
    quirks: GeminiQuirks
    endpoint: Endpoint

    def parts(self, message: Message, *, sign: bool) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Reasoning):
                self._put_signature(part, parts)
            else:
                parts.extend(self._part(part))
        calls = [part for part in parts if "functionCall" in part]
        if sign and calls and "thoughtSignature" not in calls[0]:
            calls[0]["thoughtSignature"] = UNSIGNED
        return parts

    def _put_signature(self, part: Reasoning, parts: list[dict[str, Any]]) -> None:
        """Put a text's signature where it was; thoughts themselves stay away."""
        own = self._own(part)
        if "signature" not in own:
            return
        if not (own.get("follows") and parts and "text" in parts[-1]):
            parts.append({"text": ""})
        parts[-1]["thoughtSignature"] = own["signature"]

    def _part(self, part: Part) -> Iterator[dict[str, Any]]:
        if isinstance(part, Text):
            if part.text:
                yield {"text": part.text}
        elif isinstance(part, Image):
            yield _inline(part)
        elif isinstance(part, File):
            yield _inline(part) if is_document(part) else {"text": unread(part)}
        elif isinstance(part, ToolUse):
            yield _call(part, self._own(part))
        elif isinstance(part, ToolOutput):
            yield _output(part, self.quirks)

    def _own(self, part: Reasoning | ToolUse) -> Mapping[str, Any]:
        return own_of(part, NAME, self.request, self.endpoint)


def _inline(part: Image | File) -> dict[str, Any]:
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _output(output: ToolOutput, quirks: GeminiQuirks) -> dict[str, Any]:
    key = "error" if output.is_error else "output"
    answer: dict[str, Any] = {"id": output.id, "name": output.name}
    answer["response"] = {key: output.text}
    if quirks.result_images and (images := output.images):
        answer["parts"] = list(map(_inline, images))
    return {"functionResponse": answer}


def _call(use: ToolUse, own: Mapping[str, Any]) -> dict[str, Any]:
    call = {"id": use.id, "name": use.name, "args": dict(use.arguments)}
    written: dict[str, Any] = {"functionCall": call}
    if "signature" in own:
        written["thoughtSignature"] = own["signature"]
    return written
