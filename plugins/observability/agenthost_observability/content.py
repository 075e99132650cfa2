"""What was said, as JSON of the GenAI conventions; only when the operator asks for it.

Source: gen-ai-input-messages.json and its neighbours in semantic-conventions-genai.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from agenthost import (
    Activity,
    ChatRequest,
    Completion,
    File,
    Finish,
    Image,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolOutput,
    ToolUse,
    TurnResult,
    redacted,
    secrets_of,
)

from .attributes import FINISHES


def of(activity: Activity) -> dict[str, str]:
    """Give what was asked and answered, the daemon's own secrets blotted out."""
    pairs = [*_asked(activity), *_answered(activity)]
    secrets = secrets_of(activity.host)
    return {key: redacted(_json(value), secrets) for key, value in pairs}


def blotted(activity: Activity, text: str) -> str:
    """Blot the daemon's own secrets out of a text."""
    return redacted(text, secrets_of(activity.host))


def _asked(activity: Activity) -> Iterator[tuple[str, Json]]:
    match activity.subject:
        case ChatRequest() as request:
            system = [{"type": "text", "content": request.system}]
            yield "gen_ai.system_instructions", system
            yield "gen_ai.input.messages", [_message(m) for m in request.messages]
        case ToolUse() as call:
            yield "gen_ai.tool.call.arguments", dict(call.arguments)
        case Message() as message:
            yield "gen_ai.input.messages", [_message(message)]


def _answered(activity: Activity) -> Iterator[tuple[str, Json]]:
    match activity.result:
        case Completion() as completion:
            finish = FINISHES[completion.finish]
            answer = {**_message(completion.message), "finish_reason": finish}
            yield "gen_ai.output.messages", [answer]
        case TurnResult() as result:
            parts = [{"type": "text", "content": result.text}]
            finish = FINISHES[result.finish or Finish.STOP]
            answer = {"role": "assistant", "parts": parts, "finish_reason": finish}
            yield "gen_ai.output.messages", [answer]
        case ToolOutput() as output:
            yield "gen_ai.tool.call.result", output.text


def _message(message: Message) -> dict[str, Json]:
    return {"role": message.role.value, "parts": [*map(_part, message.parts)]}


def _part(part: Part) -> dict[str, Json]:
    match part:
        case Text(text):
            return {"type": "text", "content": text}
        case Reasoning(text):
            return {"type": "reasoning", "content": text}
        case Image(media_type, data):
            kind = {"type": "blob", "modality": "image", "mime_type": media_type}
            return {**kind, "content": data}
        case File(name, media_type):
            kind = {"type": "file", "modality": "document", "mime_type": media_type}
            return {**kind, "file_id": name}
        case ToolUse(id_, name, arguments):
            call = {"type": "tool_call", "id": id_, "name": name}
            return {**call, "arguments": dict(arguments)}
        case ToolOutput(id_, _, text):
            return {"type": "tool_call_response", "id": id_, "response": text}


def _json(value: Json) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
