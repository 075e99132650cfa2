"""What came of a tool call, and what resources and prompts hold, as MCP's content."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from agenthost import Audio, File, Image, Medium, Text, ToolOutput

from .source import Contents

WORDED = ("text/", "application/json", "application/xml")


def result_of(output: ToolOutput, version: str) -> dict[str, Any]:
    """Write a tool's outcome; before 2026 only an object is told as structured."""
    content = [{"type": "text", "text": output.text}] if output.text else []
    result: dict[str, Any] = {
        "content": [*content, *(content_of(each) for each in output.media)],
        "isError": output.is_error,
    }
    structured = output.structured
    if structured is not None and (
        version >= "2026" or isinstance(structured, Mapping)
    ):
        result["structuredContent"] = structured
    return result


def content_of(part: Text | Medium) -> dict[str, Any]:
    """Write words or a medium."""
    match part:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(kind, data):
            return {"type": "image", "data": data, "mimeType": kind}
        case Audio(kind, data):
            return {"type": "audio", "data": data, "mimeType": kind}
        case File(name, kind, "", uri):
            link = {"type": "resource_link", "uri": uri, "name": name}
            return {**link, "mimeType": kind}
        case File(name, kind, data, uri):
            held = Contents(uri or f"file:///{name}", kind, blob=data)
            return {"type": "resource", "resource": contents_of(held)}


def contents_of(held: Contents) -> dict[str, Any]:
    """Write what a resource says: words as words."""
    told = {"uri": held.uri, "mimeType": held.mime_type}
    if held.text is not None:
        return {**told, "text": held.text}
    if held.mime_type.startswith(WORDED):
        try:
            return {**told, "text": base64.b64decode(held.blob).decode()}
        except ValueError:
            # It calls itself words, and is none.
            pass
    return {**told, "blob": held.blob}
