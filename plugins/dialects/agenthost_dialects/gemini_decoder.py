"""The Gemini dialect (generateContent), read: answers, streamed and whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenthost import (
    Delta,
    Finish,
    ProviderError,
    ProviderFault,
    Usage,
)

from .answers import (
    CallDraft,
    ThoughtDraft,
    compact,
    count_of,
    objects_of,
    text_of,
)
from .decoding import EventDecoder
from .faults import stream_fault
from .likelihood import scored_by_google

NAME = "gemini-generateContent"

FINISHES = {
    "STOP": Finish.STOP,
    # Google says STOP behind calls, too; servers that stand in for it say this.
    "FUNCTION_CALL": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "SAFETY": Finish.CONTENT_BLOCKED,
    "RECITATION": Finish.CONTENT_BLOCKED,
    "LANGUAGE": Finish.CONTENT_BLOCKED,
    "BLOCKLIST": Finish.CONTENT_BLOCKED,
    "PROHIBITED_CONTENT": Finish.CONTENT_BLOCKED,
    "SPII": Finish.CONTENT_BLOCKED,
    "IMAGE_SAFETY": Finish.CONTENT_BLOCKED,
    "IMAGE_PROHIBITED_CONTENT": Finish.CONTENT_BLOCKED,
    "IMAGE_RECITATION": Finish.CONTENT_BLOCKED,
    "MODEL_ARMOR": Finish.CONTENT_BLOCKED,
}


class GeminiDecoder(EventDecoder):
    """Reads one answer; it ends with the body, after a reason to stop."""

    def _take(self, event: bytes) -> Iterable[Delta]:
        return self._payload(self._object(event))

    def _end_unsaid(self) -> Iterable[Delta]:
        return (self._draft.complete(),)

    def _payload(self, payload: dict[str, Any]) -> Iterator[Delta]:
        if payload.get("error"):
            raise stream_fault(self._endpoint, payload)
        self._refuse_blocked(payload.get("promptFeedback"))
        self._draft.id = text_of(payload.get("responseId"))
        usage = payload.get("usageMetadata")
        if isinstance(usage, dict):
            self._draft.usage = read_usage(usage)
        for candidate in objects_of(payload.get("candidates"))[:1]:
            content = candidate.get("content")
            if isinstance(content, dict):
                for part in objects_of(content.get("parts")):
                    yield from self._part(part)
            told = scored_by_google(candidate.get("logprobsResult"))
            yield from self._draft.score(told)
            self._reason(candidate.get("finishReason"))

    def _refuse_blocked(self, feedback: Any) -> None:
        reason = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if reason:
            raise ProviderError(
                ProviderFault.CONTENT_BLOCKED,
                self._endpoint.provider,
                f"refused the prompt ({reason}); change what is asked",
            )

    def _part(self, part: Mapping[str, Any]) -> Iterator[Delta]:
        signature = text_of(part.get("thoughtSignature"))
        call = part.get("functionCall")
        if isinstance(call, dict):
            self._call(call, signature)
        elif part.get("thought") is True:
            yield from self._draft.thought(text_of(part.get("text")))
        else:
            text = text_of(part.get("text"))
            yield from self._draft.text(text)
            if signature:
                own = {"signature": signature, "follows": bool(text)}
                self._draft.begin(ThoughtDraft(opaque={NAME: own}))

    def _call(self, call: Mapping[str, Any], signature: str) -> None:
        arguments = call.get("args")
        draft = CallDraft(
            text_of(call.get("id")),
            text_of(call.get("name")),
            [] if arguments is None else [compact(arguments)],
        )
        if signature:
            draft.opaque[NAME] = {"signature": signature}
        self._draft.begin(draft)

    def _reason(self, reason: Any) -> None:
        if isinstance(reason, str) and reason != "FINISH_REASON_UNSPECIFIED":
            self._draft.ends(reason, FINISHES)


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Normalise a usage object; thoughts and tool prompts stand beside the rest."""
    thoughts = count_of(usage, "thoughtsTokenCount")
    prompt = count_of(usage, "promptTokenCount")
    return Usage(
        input_tokens=prompt + count_of(usage, "toolUsePromptTokenCount"),
        output_tokens=count_of(usage, "candidatesTokenCount") + thoughts,
        cached_tokens=count_of(usage, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )
