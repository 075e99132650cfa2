"""What was said, as JSON of the GenAI conventions; only when the operator asks for it.

Source: gen-ai-input-messages.json and its neighbours in semantic-conventions-genai.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

from agenthost import (
    Activity,
    ChatRequest,
    Completion,
    ConfigError,
    Finish,
    Host,
    Image,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolOutput,
    ToolUse,
    TurnResult,
)

from .attributes import FINISHES

BLOT = "[secret]"
SECRET_NAME = re.compile(r"(?i)(key|token|secret|password)$")
SHORTEST_SECRET = 6


def of(activity: Activity) -> dict[str, str]:
    """Give what was asked and answered, the daemon's own secrets blotted out."""
    pairs = [*_asked(activity), *_answered(activity)]
    secrets = _secrets(activity.host)
    return {key: _blotted(_json(value), secrets) for key, value in pairs}


def blotted(activity: Activity, text: str) -> str:
    """Blot the daemon's own secrets out of a text."""
    return _blotted(text, _secrets(activity.host))


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
        case ToolUse(id_, name, arguments):
            call = {"type": "tool_call", "id": id_, "name": name}
            return {**call, "arguments": dict(arguments)}
        case ToolOutput(id_, _, text):
            return {"type": "tool_call_response", "id": id_, "response": text}


def _json(value: Json) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _secrets(host: Host) -> list[str]:
    """Every secret that the daemon was given, longest first."""
    key = host.config.api_key
    values = [v for name, v in host.environ.items() if SECRET_NAME.search(name)]
    values += [key.reveal()] if key is not None else []
    # A vault that cannot be opened has given nothing away either.
    with suppress(ConfigError):
        kept = [host.vault.get(name) for name in host.vault.names()]
        values += [secret.reveal() for secret in kept if secret is not None]
    long = {v for v in map(str.strip, values) if len(v) >= SHORTEST_SECRET}
    return sorted(long, key=len, reverse=True)


def _blotted(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, BLOT)
        text = text.replace(json.dumps(secret, ensure_ascii=False)[1:-1], BLOT)
    return text
