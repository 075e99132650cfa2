"""Look at a conversation the way every dialect needs to."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenthost import (
    ChatRequest,
    Endpoint,
    File,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolUse,
)

from .outgoing import keyed

SAFE_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def loop_start(messages: Sequence[Message]) -> int:
    """Find where the tool loop at hand begins: after the last word of the user."""
    for end in range(len(messages), 0, -1):
        if messages[end - 1].role is Role.USER:
            return end
    return 0


def wire_id(call_id: str, pattern: re.Pattern[str] = SAFE_ID, length: int = 24) -> str:
    """Write a call's id as the vendor takes it; the same id always becomes the same.

    A conversation may hold ids of another provider that its rules refuse.
    """
    if pattern.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:length]


def own_of(
    part: Reasoning | ToolUse, name: str, request: ChatRequest, endpoint: Endpoint
) -> Mapping[str, Any]:
    """Take what goes back only to who made it: this provider's model, none beside it.

    Vendors refuse, or silently drop, what another model has signed or sealed.
    """
    own: Mapping[str, Any] = part.opaque.get(name, {})
    made_by = own.get("provider"), own.get("model")
    return own if made_by == (endpoint.provider, request.model) else {}


def begun_elsewhere(name: str, request: ChatRequest, endpoint: Endpoint) -> bool:
    """Tell whether a step of the tool loop at hand has no thinking of this model.

    With a thinking budget, Claude refuses a loop whose steps do not open with its own;
    the model thinks again from the user's next word on.
    """
    steps = request.messages[loop_start(request.messages) :]
    return not all(
        any(
            own_of(part, name, request, endpoint)
            for part in step.parts
            if isinstance(part, Reasoning)
        )
        for step in steps
        if step.tool_uses
    )


def told_by_name(message: Message) -> Message:
    """Say in words who speaks, for a service whose messages have no name."""
    said = Text(f"[{message.name} says:]\n")
    return replace(message, parts=(said, *message.parts), name="")


def is_document(file: File) -> bool:
    """Tell whether it is of the one kind that vendors read, and is here."""
    return bool(file.data) and file.media_type == "application/pdf"


def unread(file: File) -> str:
    """Name a file to a model whose vendor takes none of its kind."""
    return f"[file {file.name}: {file.media_type}, not shown]"


def data_url(part: File | Image) -> str:
    """Write a file as a URL that holds it."""
    return f"data:{part.media_type};base64,{part.data}"


def bearer(endpoint: Endpoint) -> dict[str, str]:
    """Make the headers of a JSON request with the key, when there is one."""
    return {"Content-Type": "application/json", "Accept": "*/*", **keyed(endpoint)}


def effort_of(budget: int) -> str:
    """Put a number of thinking tokens into one of the vendors' three words."""
    if budget <= 4096:
        return "low"
    return "medium" if budget <= 16384 else "high"
