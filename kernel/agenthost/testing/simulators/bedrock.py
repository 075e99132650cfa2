"""The Bedrock Converse dialect from the server's side.

Source: Amazon Bedrock API reference, "Converse" and "ConverseStream", and AWS
documentation, "Event stream encoding".
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from agenthost_chat.chat import Finish, ModelSettings, Usage

from .script import Heard, Line, Offer, ScriptedCall, Turn, called, pieces

FINISHES = {
    Finish.STOP: "end_turn",
    Finish.TOOL_USE: "tool_use",
    Finish.LENGTH: "max_tokens",
    Finish.CONTENT_BLOCKED: "guardrail_intervened",
}
SIGNATURE = "c2lnbmVk"
TEXT = 7


@dataclass(frozen=True, slots=True)
class BedrockWire:
    """Converse, with signed reasoning; streams are binary frames."""

    base: str = ""
    path: str = "/model/*/converse*"
    content_type: str = "application/vnd.amazon.eventstream"

    def hear(self, headers: Mapping[str, str], raw: bytes) -> Heard:
        """Read a request; model and manner stand in the path."""
        body = json.loads(raw)
        _, _, model, verb = headers[":path"].split("/")
        bearer = headers.get("authorization", "")
        blocks = [(m["role"], b) for m in body["messages"] for b in m["content"]]
        results = list(_kind(blocks, "toolResult"))
        tools = body.get("toolConfig", {}).get("tools", ())
        limits = body.get("inferenceConfig", {})
        return Heard(
            path=headers[":path"],
            key=bearer.removeprefix("Bearer ") or None,
            raw=raw,
            body=body,
            model=unquote(model),
            stream=verb == "converse-stream",
            system="".join(block.get("text", "") for block in body.get("system", ())),
            said=tuple(
                b["text"] for role, b in blocks if role == "user" and "text" in b
            ),
            images=tuple(i["source"]["bytes"] for i in _kind(blocks, "image")),
            tools=tuple(tool["toolSpec"]["name"] for tool in tools),
            calls=tuple(use["toolUseId"] for use in _kind(blocks, "toolUse")),
            results=tuple((r["toolUseId"], r["content"][0]["text"]) for r in results),
            result_images=tuple(
                block["image"]["source"]["bytes"]
                for r in results
                for block in r["content"][1:]
            ),
            thoughts=tuple(
                (t["reasoningText"]["text"], t["reasoningText"]["signature"])
                for t in _kind(blocks, "reasoningContent")
            ),
            steps=len(results),
            transcript=tuple(_transcript(blocks)),
            offered=tuple(
                Offer(
                    spec["name"],
                    spec.get("description", ""),
                    spec["inputSchema"]["json"],
                )
                for spec in (tool["toolSpec"] for tool in tools)
            ),
            errors=tuple(r["toolUseId"] for r in results if r.get("status") == "error"),
            max_tokens=limits.get("maxTokens"),
            temperature=limits.get("temperature"),
            settings=_settings(body),
        )

    def events(self, turn: Turn) -> Sequence[bytes]:
        """Write the frames of one answer; metadata comes last."""
        frames = [_event("messageStart", {"role": "assistant"})]
        for index, (deltas, call) in enumerate(_blocks(turn)):
            place = {"contentBlockIndex": index}
            if call is not None:
                start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
                frames.append(_event("contentBlockStart", {**place, "start": start}))
            frames += [
                _event("contentBlockDelta", {**place, "delta": delta})
                for delta in deltas
            ]
            frames.append(_event("contentBlockStop", place))
        frames.append(_event("messageStop", {"stopReason": FINISHES[turn.finish]}))
        usage = {"usage": _usage(turn.usage), "metrics": {"latencyMs": 1}}
        return [*frames, _event("metadata", usage)]

    def whole(self, turn: Turn) -> bytes:
        """Write one answer; arguments that are no JSON break it, as they should."""
        message = {"role": "assistant", "content": list(_whole_blocks(turn))}
        text = json.dumps(
            {
                "output": {"message": message},
                "stopReason": FINISHES[turn.finish],
                "usage": _usage(turn.usage),
                "metrics": {"latencyMs": 1},
            }
        )
        for call in turn.calls:
            text = text.replace('"<arguments>"', call.arguments, 1)
        return text.encode()

    def refusal(self, status: int, words: str) -> bytes:
        """Write an error body; its status says the rest."""
        del status
        return json.dumps({"message": words}).encode()

    def failure(self, words: str) -> bytes:
        """Write an exception frame."""
        headers = {
            ":exception-type": "internalServerException",
            ":content-type": "application/json",
            ":message-type": "exception",
        }
        return frame(headers, json.dumps({"message": words}).encode())

    def garbage(self) -> bytes:
        """Write a frame whose payload was spoilt on its way."""
        spoilt = bytearray(_event("contentBlockStop", {"contentBlockIndex": 0}))
        spoilt[-10] ^= 1
        return bytes(spoilt)

    def told(self, usage: Usage) -> Usage:
        """Keep what the wire can say: not how much of it was reasoning."""
        return Usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
        )


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Write one message of an event stream whose headers are texts."""
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    written = b"".join(
        struct.pack(f">B{len(n)}sBH{len(v)}s", len(n), n, TEXT, len(v), v)
        for n, v in pairs
    )
    lengths = struct.pack(">II", 16 + len(written) + len(payload), len(written))
    whole = lengths + struct.pack(">I", zlib.crc32(lengths)) + written + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def _settings(body: Mapping[str, Any]) -> ModelSettings:
    limits = body.get("inferenceConfig", {})
    choice = body.get("toolConfig", {}).get("toolChoice", {})
    kind = "required" if "any" in choice else "".join(choice)
    form = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {})
    written = form.get("jsonSchema", {}).get("schema")
    return ModelSettings(
        tool_choice=choice.get("tool", {}).get("name", kind),
        response_format=json.loads(written) if written else None,
        stop=tuple(limits.get("stopSequences", ())),
        top_p=limits.get("topP"),
    )


def _event(kind: str, payload: Mapping[str, Any]) -> bytes:
    headers = {
        ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    return frame(headers, json.dumps(payload).encode())


Block = tuple[list[dict[str, Any]], ScriptedCall | None]


def _blocks(turn: Turn) -> Iterator[Block]:
    if turn.reasoning:
        deltas = [{"reasoningContent": {"text": p}} for p in pieces(turn.reasoning)]
        yield [*deltas, {"reasoningContent": {"signature": SIGNATURE}}], None
    if turn.redacted:
        yield [{"reasoningContent": {"redactedContent": turn.redacted}}], None
    if turn.text:
        yield [{"text": piece} for piece in pieces(turn.text)], None
    for call in turn.calls:
        yield [{"toolUse": {"input": p}} for p in pieces(call.arguments)], call


def _whole_blocks(turn: Turn) -> Iterator[dict[str, Any]]:
    if turn.reasoning:
        thought = {"text": turn.reasoning, "signature": SIGNATURE}
        yield {"reasoningContent": {"reasoningText": thought}}
    if turn.redacted:
        yield {"reasoningContent": {"redactedContent": turn.redacted}}
    if turn.text:
        yield {"text": turn.text}
    for call in turn.calls:
        use = {"toolUseId": call.id, "name": call.name, "input": "<arguments>"}
        yield {"toolUse": use}


def _kind(
    blocks: Sequence[tuple[str, Mapping[str, Any]]], kind: str
) -> Iterator[Mapping[str, Any]]:
    return (block[kind] for _, block in blocks if kind in block)


def _transcript(blocks: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[Line]:
    for role, block in blocks:
        if "text" in block:
            yield role, block["text"]
        elif "toolUse" in block:
            yield called(block["toolUse"]["name"], block["toolUse"]["input"])
        elif "toolResult" in block:
            yield "result", block["toolResult"]["content"][0]["text"]


def _usage(usage: Usage) -> dict[str, Any]:
    beside = usage.cached_tokens + usage.cache_write_tokens
    return {
        "inputTokens": usage.input_tokens - beside,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "cacheReadInputTokens": usage.cached_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }
