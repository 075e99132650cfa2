"""Files that people handed to an agent, as the model that is asked takes them.

A message of a conversation names a file or has it; what is in it is put there for each
call, so that another model gets it in another form, and what was deleted is told in
words.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace

from agenthost import (
    UPLOAD,
    ChatRequest,
    File,
    Image,
    Message,
    ModelFacts,
    NotFound,
    Part,
    Role,
    Text,
    Uploads,
)

ROOM = 15 * 1024 * 1024
"""Bytes of all files of a call: as base64 they are the 20 MB that most vendors take."""


def names_files(request: ChatRequest) -> bool:
    """Tell whether a message of the user names a file."""
    # Every call of a long conversation looks: plain loops take half as long as any().
    for message in request.messages:
        if message.role is Role.USER:
            for part in message.parts:
                if isinstance(part, File):
                    return True
    return False


async def handed(
    request: ChatRequest, model: ModelFacts, uploads: Uploads, agent_id: str
) -> ChatRequest:
    """Put the agent's files into the messages that name them, the newest first.

    What the model cannot take, what is gone, and what has no room beside newer files is
    named in words instead.
    """
    room = ROOM
    messages: list[Message] = []
    for message in reversed(request.messages):
        if message.role is not Role.USER:
            messages.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, File):
                parts.append(part)
                continue
            data = await _read(part, room, uploads, agent_id)
            room -= len(data) if isinstance(data, bytes) else 0
            parts.append(await asyncio.to_thread(_written, part, data, model))
        messages.append(replace(message, parts=tuple(parts)))
    return replace(request, messages=tuple(reversed(messages)))


async def _read(file: File, room: int, uploads: Uploads, agent_id: str) -> bytes | str:
    """Read a file, or tell why it cannot be read."""
    if file.data:
        size = len(file.data) * 3 // 4
        if size > room:
            return "left out, since newer files leave no room for it"
        return await asyncio.to_thread(base64.b64decode, file.data)
    upload_id = file.uri.removeprefix(UPLOAD)
    try:
        known = await uploads.get(agent_id, upload_id)
        if known.size > room:
            return "left out, since newer files leave no room for it"
        return await uploads.read(agent_id, upload_id)
    except NotFound:
        return "it has been deleted"


def _written(file: File, data: bytes | str, model: ModelFacts) -> Part:
    """Write a file in the form that the model takes."""
    kind = file.media_type
    if isinstance(data, str):
        return _note(file, data)
    if kind.startswith("text/"):
        text = data.decode("utf-8-sig", "replace")
        return Text(f"\n\n[file {file.name}]\n{text}\n[end of {file.name}]\n")
    if kind.startswith("image/") and model.supports_vision:
        return Image(kind, base64.b64encode(data).decode())
    if kind == "application/pdf" and model.documents:
        return replace(file, data=base64.b64encode(data).decode(), uri="")
    return _note(file, f"{model.id} takes no {kind}")


def _note(file: File, why: str) -> Text:
    return Text(f"\n[file {file.name}: {why}]\n")
