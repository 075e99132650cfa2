"""What a model without eyes is told of pictures that tools returned."""

from __future__ import annotations

from dataclasses import replace

from agenthost import ChatRequest, Message, Part, Role, ToolOutput


def in_words(request: ChatRequest) -> ChatRequest:
    """Leave the media out of the results of tools: their words name each of them.

    A request without any comes back as it is.
    """
    if not any(map(_shows, request.messages)):
        return request
    messages = tuple(_told(m) if _shows(m) else m for m in request.messages)
    return replace(request, messages=messages)


def _shows(message: Message) -> bool:
    return message.role is Role.TOOL and any(map(_has_media, message.parts))


def _has_media(part: Part) -> bool:
    return isinstance(part, ToolOutput) and bool(part.media)


def _told(message: Message) -> Message:
    parts = (
        replace(part, media=()) if isinstance(part, ToolOutput) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))
