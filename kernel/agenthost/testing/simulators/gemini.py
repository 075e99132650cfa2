"""The generateContent dialect from the server's side.

Source: Gemini API reference, "Generating content".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from agenthost_chat.chat import Finish, ModelSettings, Usage

from .script import Heard, Line, Turn, called, offer, pieces

FINISHES = {
    Finish.STOP: "STOP",
    Finish.TOOL_USE: "STOP",
    Finish.LENGTH: "MAX_TOKENS",
    Finish.CONTENT_BLOCKED: "SAFETY",
}
STATUSES = {
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
SIGNATURE = "c2lnbmVkLXRob3VnaHQ="


@dataclass(frozen=True, slots=True)
class GeminiWire:
    """Content, with signed calls."""

    base: str = ""
    path: str = "/v1beta/models/*:*enerateContent"
    content_type: str = "text/event-stream"

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request; model and manner stand in the path."""
        body = json.loads(raw)
        named, _, verb = headers[":path"].rpartition("/")[2].partition(":")
        parts = [
            (content["role"], part)
            for content in body["contents"]
            for part in content["parts"]
        ]
        answers = [p["functionResponse"] for _, p in parts if "functionResponse" in p]
        calls = [part for _, part in parts if "functionCall" in part]
        system = body.get("systemInstruction", {"parts": []})
        options = body.get("generationConfig", {})
        return Heard(
            path=headers[":path"],
            key=headers.get("x-goog-api-key"),
            raw=raw,
            body=body,
            model=unquote(named),
            stream=verb.startswith("stream"),
            system="".join(part["text"] for part in system["parts"]),
            said=tuple(
                p["text"] for role, p in parts if role == "user" and "text" in p
            ),
            images=tuple(
                p["inlineData"]["data"] for _, p in parts if "inlineData" in p
            ),
            tools=tuple(
                tool["name"]
                for offered in body.get("tools", ())
                for tool in offered["functionDeclarations"]
            ),
            calls=tuple(p["functionCall"]["id"] for p in calls),
            results=tuple((a["id"], "".join(a["response"].values())) for a in answers),
            result_images=tuple(
                p["inlineData"]["data"] for a in answers for p in a.get("parts", ())
            ),
            thoughts=tuple(
                ("", p["thoughtSignature"]) for _, p in parts if "thoughtSignature" in p
            ),
            steps=len(answers),
            transcript=tuple(_transcript(parts)),
            offered=tuple(
                offer(tool, "parametersJsonSchema")
                for offered in body.get("tools", ())
                for tool in offered["functionDeclarations"]
            ),
            errors=tuple(a["id"] for a in answers if "error" in a["response"]),
            max_tokens=options.get("maxOutputTokens"),
            temperature=options.get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write fragments; the last has the reason to stop and the counts."""
        parts = list(_parts(turn, whole=False))
        chunks: list[dict[str, Any]] = [
            {"candidates": [_candidate([part])]} for part in parts
        ]
        chunks.append(
            {
                "candidates": [_candidate([{"text": ""}], FINISHES[turn.finish])],
                "usageMetadata": _usage(turn.usage),
            }
        )
        return [
            _with_arguments(f"data: {json.dumps(chunk)}\r\n\r\n", turn, index, parts)
            for index, chunk in enumerate(chunks)
        ]

    def whole(self, turn: Turn) -> bytes:
        """Write one answer; arguments that are no JSON break it, as they should."""
        parts = list(_parts(turn, whole=True))
        candidate = _candidate(parts, FINISHES[turn.finish])
        answer = {"candidates": [candidate], "usageMetadata": _usage(turn.usage)}
        text = json.dumps(answer)
        for call in turn.calls:
            text = text.replace('"<arguments>"', call.arguments, 1)
        return text.encode()

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body."""
        name = STATUSES.get(status, "")
        return json.dumps({"error": _error(status, words, name)}).encode()

    def failure(self, words: str) -> bytes:
        """Write an error event."""
        error = _error(500, words, "INTERNAL")
        return f"data: {json.dumps({'error': error})}\r\n\r\n".encode()

    def garbage(self) -> bytes:
        """Write an event that is not JSON."""
        return b'data: {"candidates": [{"content": \r\n\r\n'

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say: not what was written to the cache."""
        return Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        )


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    options = body.get("generationConfig", {})
    choice = body.get("toolConfig", {}).get("functionCallingConfig", {})
    mode = choice.get("mode", "").lower()
    (named,) = choice.get("allowedFunctionNames", [""])
    return ModelSettings(
        tool_choice=named or ("required" if mode == "any" else mode),
        response_format=options.get("responseJsonSchema"),
        stop=tuple(options.get("stopSequences", ())),
        top_p=options.get("topP"),
        seed=options.get("seed"),
    )


def _error(status: int, words: str, name: str) -> dict[str, Any]:
    return {"code": status, "message": words, "status": name}


def _candidate(
    parts: Sequence[Mapping[str, Any]], finish: str | None = None
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish:
        candidate["finishReason"] = finish
    return {**candidate, "index": 0}


def _parts(turn: Turn, *, whole: bool) -> Iterator[dict[str, Any]]:
    def cut(text: str) -> list[str]:
        return [text] if whole and text else pieces(text)

    for piece in cut(turn.reasoning):
        yield {"text": piece, "thought": True}
    for piece in cut(turn.text):
        yield {"text": piece}
    for index, call in enumerate(turn.calls):
        written = {"id": call.id, "name": call.name, "args": "<arguments>"}
        part: dict[str, Any] = {"functionCall": written}
        if index == 0:
            part["thoughtSignature"] = SIGNATURE
        yield part


def _with_arguments(
    event: str, turn: Turn, index: int, parts: Sequence[Mapping[str, Any]]
) -> bytes:
    calls = [n for n, part in enumerate(parts) if "functionCall" in part]
    if index in calls:
        arguments = turn.calls[calls.index(index)].arguments
        event = event.replace('"<arguments>"', arguments)
    return event.encode()


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }


def _transcript(parts: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Line]:
    for role, part in parts:
        # A part without words bears the signature of the one before.
        if part.get("text"):
            yield ("assistant" if role == "model" else role), part["text"]
        elif "functionCall" in part:
            yield called(part["functionCall"]["name"], part["functionCall"]["args"])
        elif "functionResponse" in part:
            yield "result", "".join(part["functionResponse"]["response"].values())
