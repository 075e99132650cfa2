"""Speech in the OpenAI dialect: a file goes in, what was said comes out.

Sources: OpenAI API reference, "Create transcription"; Groq, "Speech to Text". Servers
of one's own speak it too: whisper.cpp, speaches, LocalAI.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from agenthost import EmbeddingCall, ProviderError, ProviderFault

from .faults import http_fault
from .outgoing import address, headed, keyed

LARGEST = 1024 * 1024
SUFFIXES: Mapping[str, str] = MappingProxyType(
    {
        "audio/ogg": "ogg",
        "audio/mpeg": "mp3",
        "audio/mp4": "m4a",
        "audio/wav": "wav",
        "audio/webm": "webm",
        "audio/flac": "flac",
    }
)
"""Vendors tell the format by the name."""


async def transcribe(
    call: EmbeddingCall, audio: bytes, media_type: str, language: str
) -> tuple[str, float]:
    """Give what is said, and how many seconds it takes; 0 where that is not told.

    Args:
        call: Where it goes; it has no texts.
        audio: The file.
        media_type: What it is: one of ``SUFFIXES``.
        language: What is spoken, as ISO 639-1 has it; "" where that is not known.

    Raises:
        ProviderError: With the fault of the status, the body or the connection.
    """
    endpoint, row = call.endpoint, call.endpoint.model
    fields = {
        "model": row.upstream_id if row else "",
        "response_format": "json",
        **({"language": language} if language else {}),
        **endpoint.extras.body,
    }
    url = f"{endpoint.base_url.rstrip('/')}/audio/transcriptions"
    name = f"audio.{SUFFIXES.get(media_type, 'bin')}"
    async with call.exchange.faults(endpoint.provider):
        answer = await call.http.post(
            address(endpoint, url),
            headers=headed(endpoint, keyed(endpoint)),
            data={key: str(value) for key, value in fields.items()},
            files={"file": (name, audio, media_type)},
            extensions=call.extensions,
        )
    if not answer.is_success:
        body, status = answer.content[:LARGEST], answer.status_code
        raise http_fault(endpoint, status, answer.headers, body)
    try:
        return _read(answer.json())
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ProviderError(
            ProviderFault.MALFORMED,
            endpoint.provider,
            "the answer holds no transcription",
        ) from error


def _read(answer: Any) -> tuple[str, float]:
    text = answer["text"]
    if not isinstance(text, str):
        raise TypeError("text is none")
    usage = answer.get("usage") or {}
    told = usage.get("seconds") if usage.get("type") == "duration" else None
    seconds = told or answer.get("duration") or 0
    known = isinstance(seconds, int | float) and 0 < seconds < 1e6
    return text, float(seconds) if known else 0.0
