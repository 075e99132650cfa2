"""The OpenAI responses dialect, read: answers, streamed and whole.

Source: OpenAI API reference, "Streaming events" of responses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenthost import ChatRequest, Delta, Endpoint, Finish, Usage

from .answers import (
    CallDraft,
    Draft,
    TextDraft,
    ThoughtDraft,
    count_of,
    objects_of,
    text_of,
)
from .decoding import EventDecoder
from .faults import stream_fault
from .likelihood import scored
from .openai_decoder import read_cost

NAME = "openai-responses"
# Fields of a call that go back as they came; the second is Perplexity's.
CARRIED = ("id", "thought_signature")
CUT_SHORT = {
    "content_filter": Finish.CONTENT_BLOCKED,
    "max_output_tokens": Finish.LENGTH,
}


class ResponsesDecoder(EventDecoder):
    """Reads one answer."""

    def __init__(
        self, request: ChatRequest, endpoint: Endpoint, cost_field: str
    ) -> None:
        super().__init__(request, endpoint)
        self._cost_field = cost_field
        self._items: dict[str, Draft] = {}
        self._readers = {
            "response.output_item.added": self._begin,
            "response.output_item.done": self._settle,
            "response.output_text.delta": self._text,
            "response.refusal.delta": self._text,
            "response.reasoning_summary_text.delta": self._thought,
            "response.reasoning_text.delta": self._thought,
            "response.function_call_arguments.delta": self._argue,
            "response.completed": self._end,
            "response.incomplete": self._end,
            "response.failed": self._fail,
            "error": self._fail,
            "response.reasoning.search_results": self._find,
        }

    def _take(self, event: bytes) -> Iterable[Delta]:
        if self._done or event.strip() == b"[DONE]":
            return ()
        payload = self._object(event)
        if not self._streamed:
            return self._end({"response": payload})
        reader = self._readers.get(str(payload.get("type")))
        return reader(payload) if reader else ()

    def _begin(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        self._item(payload)
        yield from ()

    def _item(self, payload: Mapping[str, Any]) -> Draft:
        """Find the part that an event speaks of, or begin it."""
        key = str(payload.get("output_index"))
        known = self._items.get(key)
        if known is None:
            known = self._items[key] = _draft_of(payload.get("item"))
            self._draft.begin(known)
        return known

    def _text(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        draft = self._items.get(str(payload.get("output_index")))
        if draft is None or isinstance(draft, TextDraft):
            yield from self._draft.text(text_of(payload.get("delta")))
            yield from self._draft.score(scored(payload.get("logprobs")))

    def _thought(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        yield from self._draft.thought(text_of(payload.get("delta")))

    def _argue(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        draft = self._items.get(str(payload.get("output_index")))
        if isinstance(draft, CallDraft):
            self._draft.argue(draft, text_of(payload.get("delta")))
        yield from ()

    def _settle(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        """Take the whole item, which decides; servers may skip its pieces."""
        item = payload.get("item")
        item = item if isinstance(item, dict) else {}
        self._cite(item)
        draft = self._item(payload)
        if isinstance(draft, CallDraft):
            self._settle_call(draft, item)
        elif isinstance(draft, ThoughtDraft):
            if not draft.pieces:
                for piece in _summary(item):
                    yield from self._draft.thought(piece)
            if text_of(item.get("encrypted_content")):
                draft.opaque[NAME] = {"item": _sendable(item)}
        elif not draft.pieces:
            for part in objects_of(item.get("content")):
                said = text_of(part.get("text")) or text_of(part.get("refusal"))
                yield from self._draft.text(said)
                yield from self._draft.score(scored(part.get("logprobs")))

    def _find(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        """Take note of what was found; an event of Perplexity's."""
        for page in objects_of(payload.get("results")):
            self._draft.find(page)
        yield from ()

    def _cite(self, item: Mapping[str, Any]) -> None:
        """Note the pages that words point to, and those that were found.

        Perplexity tells what it found in items of their own.
        """
        if item.get("type") == "search_results":
            _ = [*self._find(item)]
        for part in objects_of(item.get("content")):
            for note in objects_of(part.get("annotations")):
                self._draft.cite(note)

    def _settle_call(self, draft: CallDraft, item: Mapping[str, Any]) -> None:
        draft.id = text_of(item.get("call_id")) or draft.id
        draft.name = text_of(item.get("name")) or draft.name
        if isinstance(item.get("arguments"), str):
            draft.arguments.clear()
            self._draft.argue(draft, text_of(item.get("arguments")))
        carried = {name: item[name] for name in CARRIED if text_of(item.get(name))}
        if carried:
            draft.opaque[NAME] = carried

    def _end(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        answer = payload.get("response")
        answer = answer if isinstance(answer, dict) else {}
        status = str(answer.get("status"))
        if answer.get("error") or status in {"failed", "cancelled"}:
            raise stream_fault(self._endpoint, answer)
        if not self._items:
            for index, item in enumerate(objects_of(answer.get("output"))):
                yield from self._settle({"output_index": index, "item": item})
        for item in objects_of(answer.get("output")):
            self._cite(item)
        self._reason(answer)
        self._draft.id = text_of(answer.get("id"))
        usage = answer.get("usage")
        if isinstance(usage, dict):
            self._draft.usage = read_usage(usage, self._cost_field)
        self._done = True
        yield self._draft.complete()

    def _reason(self, answer: Mapping[str, Any]) -> None:
        if answer.get("status") == "completed":
            self._draft.finish = Finish.STOP
        elif answer.get("status") == "incomplete":
            details = answer.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            self._draft.ends(str(reason), CUT_SHORT)

    def _fail(self, payload: Mapping[str, Any]) -> Iterator[Delta]:
        answer = payload.get("response")
        raise stream_fault(
            self._endpoint, answer if isinstance(answer, dict) else payload
        )


def _draft_of(item: Any) -> Draft:
    item = item if isinstance(item, dict) else {}
    if item.get("type") == "function_call":
        return CallDraft(text_of(item.get("call_id")), text_of(item.get("name")))
    if item.get("type") == "reasoning":
        return ThoughtDraft()
    return TextDraft()


def _summary(item: Mapping[str, Any]) -> Iterator[str]:
    for field in ("summary", "content"):
        for part in objects_of(item.get(field)):
            yield text_of(part.get("text"))


def _sendable(item: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what a request does not take."""
    names = ("type", "id", "summary", "encrypted_content")
    return {name: item[name] for name in names if name in item}


def read_usage(usage: Mapping[str, Any], cost_field: str = "") -> Usage:
    """Normalise a usage object; its counts are whole already."""
    return Usage(
        input_tokens=count_of(usage, "input_tokens"),
        output_tokens=count_of(usage, "output_tokens"),
        cached_tokens=count_of(usage, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=count_of(
            usage, "input_tokens_details", "cache_write_tokens"
        ),
        reasoning_tokens=count_of(usage, "output_tokens_details", "reasoning_tokens"),
        cost_micro_usd=read_cost(usage, cost_field),
    )
