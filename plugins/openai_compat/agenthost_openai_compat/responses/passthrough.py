"""``POST /v1/responses`` of a model itself: nothing of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from uuid import UUID

from agenthost import (
    UNTRUSTED,
    AgentHostError,
    Answer,
    Answered,
    Call,
    ChatRequest,
    EventStream,
    HeldFrames,
    InvalidInput,
    JsonObject,
    Payer,
    Target,
    TextChunk,
    ToolDefinition,
)

from ..heard import Heard
from ..media import Remote, fetched_of
from ..once import keyed_of
from ..passthrough import payer_of, said_once, spoken
from ..passthrough_chat import Said, begun
from ..reading import Asked
from ..tools import call_of
from .asking import native_of, offered, settings_of, thought_of
from .draft import (
    REASONS,
    Draft,
    Ending,
    called,
    ended,
    fault_of,
    messages_of,
    tokens_of,
)
from .items import items_of, remote_of
from .reading import ItemReader
from .shapes import ResponseBody
from .stream import Following

UNKEPT = {
    "previous_response_id": "send the whole conversation as input",
    "background": "wait for the answer, or stream it",
    "store": "leave it out, or say false",
}


class Direct(Draft):
    """A response that no turn stands behind.

    Args:
        asked: The request, but for its input.
        model: What answers.
        created_at: When it was asked for.
        payer: Under whose id it is booked.
    """

    def __init__(
        self, asked: JsonObject, model: str, created_at: float, payer: Payer
    ) -> None:
        super().__init__({**asked, "store": False}, model, created_at, None)
        self._id = payer.turn_id

    @property
    def hex(self) -> str:
        """What its id, and those of its items, are made of."""
        return UUID(self._id).hex


async def answered(call: Call, target: Target, body: ResponseBody) -> Answer:
    """Let a model answer; leaving cancels its call.

    Raises:
        AgentHostError: It cannot, and why.
    """
    for name, remedy in UNKEPT.items():
        if getattr(body, name):
            problem = f"a model itself keeps nothing; {remedy}, or ask an agent"
            raise InvalidInput(name, problem)
    items = items_of(body.input)
    remote = await fetched_of(call, remote_of(items), "input")
    # Megabytes of pictures would hold up everybody else.
    asked = await asyncio.to_thread(_read, items, remote, body.instructions or "")
    request = _request(target, body, asked)
    context = call.context.labelled(*((UNTRUSTED,) if remote else ()))
    keyed = keyed_of(call, "openai_responses", target, body)
    # Nobody has heard anything of a whole answer that breaks off.
    take_back = None if body.stream else lambda: True
    payer = payer_of(context, take_back, keyed.turn_id)
    told = body.model_dump(mode="json", exclude_none=True, exclude={"input"})
    named, at = "/".join(target.names), call.host.clock.time()
    draft = Direct(told, named, at, payer)
    said = spoken(call.host, target, request, payer)
    said = await said_once(call, keyed, said)
    if body.stream:
        heard = Heard(said)
        first = await begun(heard)
        frames = _frames(call, heard, first, draft)
        return EventStream(HeldFrames(frames, heard.leave))
    async for each in said:
        if isinstance(each, Answered):
            last = each
    draft.model = f"{last.spent.provider}/{last.spent.model}"
    return ended(draft.shown, _ending(call, draft, last))


def _read(items: Sequence[JsonObject], remote: Remote, instructions: str) -> Asked:
    reader = ItemReader({})
    reader.add(items, remote)
    return reader.asked(instructions)


def _request(target: Target, body: ResponseBody, asked: Asked) -> ChatRequest:
    tools, choice = _wanted(body)
    settings = settings_of(body, choice)
    return ChatRequest(
        model=target.model.upstream_id,
        system=asked.instructions,
        messages=(*asked.history, asked.message),
        tools=tools,
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        thinking_budget=thought_of(body),
        stream=bool(body.stream),
        cache_key=body.prompt_cache_key or "",
        native=native_of(body),
        **(settings.asked if settings else {}),
    )


def _wanted(body: ResponseBody) -> tuple[tuple[ToolDefinition, ...], str]:
    """Read the tools and the choice; a model sees also tools that it may not call."""
    if body.tool_choice != "none":
        return offered(body)
    tools, _ = offered(body.model_copy(update={"tool_choice": None}))
    return tools, "none" if tools else ""


def _ending(call: Call, draft: Draft, last: Answered) -> Ending:
    said, finish = last.completion.message, last.completion.finish
    reason = REASONS.get(finish)
    output = messages_of(draft, [said])
    if reason and output:
        output[-1]["status"] = "incomplete"
    for use in said.tool_uses:
        function = call_of(use)["function"]
        output.append(called(draft.hex, len(output), function, use.id))
    at, usage = call.host.clock.time(), tokens_of(last.spent.usage)
    status = "incomplete" if reason else "completed"
    return Ending(status, at, output, usage, None, reason)


async def _frames(
    call: Call, heard: Heard[Said], said: Sequence[Said], draft: Draft
) -> AsyncGenerator[bytes, None]:
    following = Following(draft, held=False)
    yield following.begin()
    written = partial(_written, call, following, draft)
    try:
        while said or (said := await heard.next()):
            if frame := b"".join(map(written, said)):
                yield frame
            said = ()
    except AgentHostError as error:
        at = call.host.clock.time()
        yield following.end(Ending("failed", at, error=fault_of(error)))


def _written(call: Call, following: Following, draft: Draft, said: Said) -> bytes:
    if isinstance(said, TextChunk):
        return following.say(said.text, said.logprobs)
    if isinstance(said, Answered):
        return following.end(_ending(call, draft, said))
    return b""
