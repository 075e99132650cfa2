"""``POST /v1/messages`` of a model itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from agenthost import (
    AgentHostError,
    Answer,
    Answered,
    Call,
    ChatRequest,
    EventStream,
    HeldFrames,
    JsonObject,
    Payer,
    ReasoningChunk,
    Target,
    TextChunk,
    TextDelta,
    Thought,
    ToolDefinition,
)

from ..heard import Heard
from ..native import native_of
from ..once import keyed_of
from ..passthrough import payer_of, said_once, spoken
from ..passthrough_chat import Said, begun, result_of
from .answer import SEALED, calls_of, ending_of, head_of, own_words_of, tokens_of
from .asked import said
from .asking import (
    refuse_unserved,
    settings_of,
    shows_thoughts,
    thinking_of,
    tools_of,
)
from .blocks import cites
from .errors import check_version
from .shapes import MessagesBody
from .stream import Events, failure

NATIVE = ("top_k", "service_tier", "display")


async def answered(call: Call, target: Target, body: MessagesBody) -> Answer:
    """Let a model answer; leaving cancels its call.

    Raises:
        AgentHostError: It cannot, and why.
    """
    check_version(call.headers)
    refuse_unserved(body)
    tools, chosen = _wanted(body)
    model = target.model.upstream_id
    seals = target.provider.spoken_to(model, target.model).name == SEALED
    stamp = {"provider": target.names[0], "model": model} if seals else None
    asked, context = await said(call, body, {}, stamp=stamp)
    settings = settings_of(body, chosen)
    request = ChatRequest(
        model=model,
        system=asked.instructions,
        messages=(*asked.history, asked.message),
        tools=tools,
        max_tokens=body.max_tokens,
        temperature=body.temperature,
        thinking_budget=thinking_of(body),
        stream=bool(body.stream),
        native=_native(body, seals=seals),
        **(settings.asked if settings else {}),
    )
    thoughts = shows_thoughts(body, usual=seals)
    keyed = keyed_of(call, "anthropic", target, body)
    # Nobody has heard anything of a whole answer that breaks off.
    take_back = None if body.stream else lambda: True
    payer = payer_of(context, take_back, keyed.turn_id)
    saying = spoken(call.host, target, request, payer)
    saying = await said_once(call, keyed, saying)
    if body.stream:
        heard = Heard(saying)
        first = await begun(heard)
        events = Events(payer.turn_id, "/".join(target.names))
        frames = _frames(call, heard, first, _Writer(events, thoughts=thoughts))
        return EventStream(HeldFrames(frames, heard.leave))
    async for each in saying:
        if isinstance(each, Answered):
            last = each
    return _whole(payer, last, thoughts=thoughts)


def _native(body: MessagesBody, *, seals: bool) -> Mapping[str, JsonObject] | None:
    """Gather what only Anthropic's wire has, whether documents are cited too."""
    told = native_of(body, SEALED, NATIVE)
    if not seals or not cites(body.messages):
        return told
    return {SEALED: {**(told or {}).get(SEALED, {}), "cites": True}}


def _wanted(body: MessagesBody) -> tuple[tuple[ToolDefinition, ...], dict[str, Any]]:
    """Read the tools and the choice; a model sees also tools that it may not call."""
    if not body.tools or (body.tool_choice or {}).get("type") != "none":
        return tools_of(body)
    tools, _ = tools_of(body.model_copy(update={"tool_choice": {"type": "auto"}}))
    return tools, {"tool_choice": "none"}


def _whole(payer: Payer, last: Answered, *, thoughts: bool) -> Answer:
    result, message = result_of(last), last.completion.message
    words = own_words_of(message, payer.turn_id, thoughts=thoughts)
    return {
        **head_of(payer.turn_id, result.model),
        "content": [*words, *calls_of(result.calls)],
        **ending_of(result),
        "usage": tokens_of(result.usage),
    }


class _Writer:
    """Writes what a model says as events."""

    def __init__(self, events: Events, *, thoughts: bool) -> None:
        self.events = events
        self._thoughts = thoughts

    def written(self, said: Sequence[Said]) -> bytes:
        """Write what came together."""
        return b"".join(map(self._one, said))

    def _one(self, said: Said) -> bytes:
        if isinstance(said, TextChunk):
            words = self.events.one(TextDelta(said.text, 0))
            cited = said.opaque.get(SEALED)
            return words + self.events.cite(cited["citations"]) if cited else words
        if isinstance(said, ReasoningChunk):
            if sealed := said.opaque.get(SEALED):
                return self.events.seal(sealed)
            thought = Thought(said.text)
            return self.events.one(thought) if self._thoughts and said.text else b""
        return self.events.end(result_of(said)) if isinstance(said, Answered) else b""


async def _frames(
    call: Call, heard: Heard[Said], said: Sequence[Said], writer: _Writer
) -> AsyncGenerator[bytes, None]:
    yield writer.events.begin() + writer.written(said)
    try:
        while said := await heard.next():
            if frame := writer.written(said):
                yield frame
    except AgentHostError as error:
        yield failure(call, error)
