"""A response on its way, what came of it, and both as clients read them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from agenthost import (
    AgentHostError,
    Finish,
    JsonObject,
    Message,
    Role,
    Text,
    Turn,
    Usage,
)
from agenthost_chat.history import open_calls
from agenthost_values.value_class import value_class

from ..stream import logprobs_of
from ..tools import call_of, told_calls

BEGIN = "resp_"
KNOWN = re.compile(r"resp_[0-9a-f]{32}")
GOES_ON = frozenset({"completed", "incomplete"})
"""How a response stands that has an answer."""
REASONS = {
    Finish.LENGTH: "max_output_tokens",
    Finish.CONTENT_BLOCKED: "content_filter",
}
"""Why an answer is not whole."""
ASKED: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""What a response tells of its request, and as what, where that has not said."""
NO_NOTES: JsonObject = {"logprobs": [], "annotations": []}


class Draft:
    """A response until it has ended.

    Args:
        asked: The request, but for its input.
        model: What answers, as it is listed.
        created_at: When it was asked for.
        row: What is kept of it from the beginning; None when it is not stored.

    Attributes:
        turn: Its turn; one that has waited for a person goes on as another object.
        over: Set when the turn has ended and does not wait.
        ending: What is kept of its end, so that it is told alike.
    """

    turn: Turn

    def __init__(
        self, asked: JsonObject, model: str, created_at: float, row: JsonObject | None
    ) -> None:
        self.asked = asked
        self.model = model
        self.created_at = created_at
        self.row = row
        self.over = asyncio.Event()
        self.ending: Ending | None = None

    @property
    def hex(self) -> str:
        """What its id, and those of its items, are made of."""
        return UUID(self.turn.id).hex

    @property
    def shown(self) -> dict[str, Any]:
        """As clients read it while it is under way."""
        return shown(self.hex, self.model, self.created_at, self.asked)


@value_class
class Ending:
    """How a response stands at its end.

    ``said`` is all that its turn has said and done, for whoever goes on behind it.
    """

    status: str
    at: float
    output: Sequence[JsonObject] = ()
    usage: JsonObject | None = None
    error: JsonObject | None = None
    reason: str | None = None
    said: Sequence[Message] = ()


def id_of(turn_id: str) -> str:
    """Give the id of the response that a turn makes."""
    return BEGIN + UUID(turn_id).hex


def shown(known: str, model: str, at: float, asked: JsonObject) -> dict[str, Any]:
    """Write a response that has not ended.

    Args:
        known: The last part of its id.
        model: What answers.
        at: When it was asked for.
        asked: The request.
    """
    told = {name: asked.get(name, usual) for name, usual in ASKED.items()}
    told["reasoning"] = {**ASKED["reasoning"], **told["reasoning"]}
    return {
        "id": BEGIN + known,
        "object": "response",
        "created_at": int(at),
        "completed_at": None,
        "status": "in_progress",
        "model": model,
        **told,
        "error": None,
        "incomplete_details": None,
        "output": [],
        "usage": None,
    }


def ended(response: Mapping[str, Any], ending: Ending) -> dict[str, Any]:
    """Write a response that has ended."""
    whole = ending.status == "completed"
    return {
        **response,
        "status": ending.status,
        "completed_at": int(ending.at) if whole else None,
        "output": list(ending.output),
        "usage": ending.usage,
        "error": ending.error,
        "incomplete_details": {"reason": ending.reason} if ending.reason else None,
    }


def answered(draft: Draft, finish: Finish | None, usage: Usage, at: float) -> Ending:
    """Tell what came of a turn that has an answer."""
    said = _said(draft.turn)
    reason = REASONS.get(finish) if finish else None
    calls = open_calls(said) if finish is Finish.TOOL_USE else ()
    output = messages_of(draft, said)
    if reason and output:
        output[-1]["status"] = "incomplete"
    for use in told_calls(draft.turn, calls):
        output.append(called(draft.hex, len(output), call_of(use)["function"], use.id))
    status = "incomplete" if reason else "completed"
    return Ending(status, at, output, tokens_of(usage), None, reason, said)


def broken_off(
    draft: Draft, status: str, words: str, usage: Usage, at: float
) -> Ending:
    """Tell what came of a turn that has no answer, only words that it was at."""
    said = _said(draft.turn)
    output = messages_of(draft, said)
    if words:
        output.append(message(draft.hex, len(output), words, "incomplete"))
        said.append(Message(Role.ASSISTANT, (Text(words),)))
    reason = REASONS[Finish.LENGTH] if status == "incomplete" else None
    return Ending(status, at, output, tokens_of(usage), None, reason, said)


def fault_of(error: AgentHostError) -> JsonObject:
    """Write why a response failed, in one of the codes that clients know."""
    code = "server_error"
    if error.status == 429:
        code = "rate_limit_exceeded"
    elif error.status < 500:
        code = "invalid_prompt"
    return {"code": code, "message": error.message}


def messages_of(draft: Draft, said: Iterable[Message]) -> list[dict[str, Any]]:
    """Write what an agent has said: each time that it spoke is a message.

    Of an answer that is to have a form only the last is one: the official clients
    read each as JSON.
    """
    spoken = [m for m in said if m.role is Role.ASSISTANT and m.text]
    if has_form(draft):
        spoken = spoken[-1:]
    return [
        message(draft.hex, at, each.text, "completed", notes_of(each))
        for at, each in enumerate(spoken)
    ]


def has_form(draft: Draft) -> bool:
    """Tell whether the answer is to be JSON."""
    given = (draft.asked.get("text") or {}).get("format") or {}
    return bool(given.get("type", "text") != "text")


def message(
    known: str, at: int, text: str, status: str, notes: JsonObject = NO_NOTES
) -> dict[str, Any]:
    """Write a message, the so manieth item of an output."""
    return {
        "id": f"msg_{known}_{at}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": [part(text, notes)],
    }


def part(text: str, notes: JsonObject = NO_NOTES) -> dict[str, Any]:
    """Write the words of a message, and what is noted of them."""
    return {"type": "output_text", "text": text, **notes}


def notes_of(said: Message) -> JsonObject:
    """Note how likely tokens were, and the pages that words rest on: all of them."""
    cited = {"type": "url_citation", "start_index": 0, "end_index": len(said.text)}
    pages = [{**cited, "url": page.url, "title": page.title} for page in said.citations]
    return {"logprobs": logprobs_of([said]), "annotations": pages}


def called(
    known: str, at: int, function: Mapping[str, Any], call_id: str
) -> dict[str, Any]:
    """Write a call of the client's, the so manieth item of an output."""
    return {
        "id": f"fc_{known}_{at}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        **function,
    }


def tokens_of(usage: Usage) -> JsonObject:
    """Write what a response took."""
    cached, fresh = usage.cached_tokens, usage.cache_write_tokens
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": fresh},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _said(turn: Turn) -> list[Message]:
    """Give what a turn has said and done; a resumed one has its question too."""
    return [message for message in turn.spoken if message.role is not Role.USER]
