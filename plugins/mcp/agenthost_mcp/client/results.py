"""What a server answers to a call, as the result of a tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agenthost import UNTRUSTED, Audio, File, Image, Json, Medium, Text, ToolResult

MOST_PARTS = 64
REFUSED = "asks for something that is not offered to it"


def result_from(answer: Mapping[str, Any]) -> ToolResult:
    """Take an answer's content: words, pictures, sounds, resources, a JSON value."""
    if answer.get("resultType", "complete") != "complete":
        return ToolResult(f"the server {REFUSED}", is_error=True, labels=UNTRUSTED)
    content = answer.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [_part(each) for each in blocks[:MOST_PARTS] if isinstance(each, dict)]
    left_out = len(blocks) - MOST_PARTS
    if left_out > 0:
        parts.append(Text(f"[{left_out} more parts left out]"))
    words = "\n".join(each.text for each in parts if isinstance(each, Text))
    structured: Json = answer.get("structuredContent")
    return ToolResult(
        words,
        is_error=answer.get("isError") is True,
        parts=tuple(each for each in parts if not isinstance(each, Text)),
        structured=structured,
        labels=UNTRUSTED,
    )


def _part(block: Mapping[str, Any]) -> Text | Medium:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            return Image(kind, data)
        case {"type": "audio", "data": str(data), "mimeType": str(kind)}:
            return Audio(kind, data)
        case {"type": "resource", "resource": dict(resource)}:
            return _resource(resource)
        case {"type": "resource_link", "uri": str(uri)}:
            told = {
                k: str(block[k])[:500] for k in ("name", "description") if k in block
            }
            return Text(f"[resource {uri[:2_000]} {json.dumps(told)}]")
    return Text(f"[content of the unknown type {str(block.get('type'))[:50]!r}]")


def _resource(resource: Mapping[str, Any]) -> Text | Medium:
    uri, kind = str(resource.get("uri", ""))[:2_000], resource.get("mimeType")
    if isinstance(text := resource.get("text"), str):
        return Text(f"[resource {uri}]\n{text}")
    if isinstance(blob := resource.get("blob"), str):
        name = uri.rpartition("/")[2][:200] or "resource"
        return File(name, str(kind or "application/octet-stream")[:200], blob)
    return Text(f"[resource {uri}]")
