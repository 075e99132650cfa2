"""A response comes into being: as a whole, as a stream, or in the background."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import uuid4

from agenthost import (
    NO_OPTIONS,
    Agent,
    AgentHostError,
    Answer,
    Call,
    Cancelled,
    CutShort,
    Done,
    EventStream,
    Failed,
    HeldFrames,
    Mismatch,
    Missed,
    Turn,
    TurnEvent,
    TurnFailed,
    TurnOptions,
    TurnResult,
    Watcher,
)

from ..media import fetched_of
from ..naming import named
from ..once import MISMATCH
from ..passthrough import model_named
from ..stream import begun
from .asking import refuse_unserved
from .draft import (
    BEGIN,
    GOES_ON,
    Draft,
    Ending,
    answered,
    broken_off,
    ended,
    fault_of,
    id_of,
    shown,
)
from .items import items_of, remote_of
from .making import Start, draft_of, start_of, with_id
from .references import resolved
from .rows import Responses, Stored, columns_of
from .service import keeping_of
from .shapes import ResponseBody
from .stream import Following, told_again

LEFT = "the client left"


async def created(call: Call, body: ResponseBody) -> Answer:
    """Make a response, or begin to."""
    refuse_unserved(body)
    target = model_named(call, body.model)
    if target is not None:
        from .passthrough import answered as itself

        return await itself(call, target, body)
    agent = named(call.host, body.model)
    keyed = _keyed(call, agent, body)
    own = Responses(call.host.store, call.context.owner)
    stored = await _made_before(own, keyed)
    if stored is not None:
        return _again(call, own, stored, stream=bool(body.stream))
    items = items_of(await resolved(body.input, own))
    given = items, await fetched_of(call, remote_of(items), "input")
    start = await start_of(call.host, call.context, agent, body, given)
    start = with_id(start, keyed.turn_id, keyed.digest)
    draft = await draft_of(call.host, start, body, given)
    if body.background:
        known = await _later(call, start, draft)
        if body.stream:
            return streamed(call, own, await own.get(known))
        begun = shown(
            known.removeprefix(BEGIN), draft.model, draft.created_at, draft.asked
        )
        return {**begun, "status": "queued"}
    if body.stream:
        return await _streamed(call, start, draft)
    return await _whole(call, start, draft)


def _keyed(call: Call, agent: Agent, body: ResponseBody) -> TurnOptions:
    """Give the turn's id and digest, where the request has a key."""
    key = call.headers.get("idempotency-key")
    if key is None:
        return NO_OPTIONS
    place = f"openai_responses:{call.context.owner}:{agent.id}"
    told = body.model_dump(mode="json", exclude_none=True)
    return NO_OPTIONS.repeatable(key, place, told)


async def _made_before(own: Responses, keyed: TurnOptions) -> Stored | None:
    """Find what the same key has made.

    Raises:
        Mismatch: It was given for something else.
    """
    if keyed.turn_id is None:
        return None
    stored = await own.find(id_of(keyed.turn_id))
    if stored is None:
        return None
    if stored.digest != keyed.digest:
        raise Mismatch(MISMATCH)
    # Another that has no answer is tried again: its turn goes on in its place.
    return stored if stored.background or stored.status in GOES_ON else None


def _again(call: Call, own: Responses, stored: Stored, *, stream: bool) -> Answer:
    return streamed(call, own, stored) if stream else stored.shown


def streamed(call: Call, own: Responses, stored: Stored, after: int = -1) -> Answer:
    """Tell a stored response as a stream; one in the background also as it is made.

    Args:
        call: Who reads it.
        own: What they have.
        stored: The response.
        after: The number of the last event that they have of it.
    """
    if stored.background:
        from .following import Following as Behind

        # Who leaves does not stop it.
        return EventStream(Behind(call.host, own, stored, after).frames())

    async def frames() -> AsyncGenerator[bytes, None]:
        yield told_again(stored.shown)

    return EventStream(frames())


async def _later(call: Call, start: Start, draft: Draft) -> str:
    context, _, _, options = start
    turn_id = options.turn_id or str(uuid4())
    background = keeping_of(call.host).background
    await background.add(draft, turn_id, context.labels)
    return id_of(turn_id)


def _begun(call: Call, draft: Draft, turn: Turn) -> None:
    """Have it kept in the commit of its turn's end."""
    draft.turn = turn
    if draft.row is not None and turn.task is not None:
        live = keeping_of(call.host).live
        live.begin(draft)
        turn.task.add_done_callback(lambda _: live.leave(draft))


async def _whole(call: Call, start: Start, draft: Draft) -> Answer:
    options = start[-1]
    # What was said in a turn of before is told to who watches alone.
    watcher = call.host.turns.watch(*start) if options.turn_id else None
    turn = watcher.turn if watcher else call.host.turns.start(*start)
    _begun(call, draft, turn)
    try:
        ending = await _ending(call, draft)
    finally:
        # It has ended, or its client has left.
        if watcher is not None:
            watcher.leave()
        elif options.turn_id is None:
            turn.cancel(LEFT)
    return ended(draft.shown, ending)


async def _ending(call: Call, draft: Draft) -> Ending:
    try:
        return _answered(call, draft, await draft.turn.result())
    except CutShort:
        async for event in draft.turn.events():
            if isinstance(event, Failed):
                return _cut(call, draft, event.so_far)
        raise


def _answered(call: Call, draft: Draft, result: TurnResult) -> Ending:
    at = call.host.clock.time()
    return draft.ending or answered(draft, result.finish, result.usage, at)


def _cut(call: Call, draft: Draft, so_far: TurnResult) -> Ending:
    at, words = call.host.clock.time(), so_far.text
    return draft.ending or broken_off(draft, "incomplete", words, so_far.usage, at)


async def _streamed(call: Call, start: Start, draft: Draft) -> Answer:
    watcher = call.host.turns.watch(*start)
    _begun(call, draft, watcher.turn)
    try:
        told = await begun(watcher)
    except BaseException:
        # It failed before its first word, or the client has left.
        _leave(watcher)
        raise
    frames = _frames(call, watcher, told, draft)
    return EventStream(HeldFrames(frames, partial(_leave, watcher)))


async def _frames(
    call: Call, watcher: Watcher, told: Sequence[TurnEvent], draft: Draft
) -> AsyncGenerator[bytes, None]:
    """Write what was told, and what is told from now on, until the end."""
    following = Following(draft)
    yield following.begin()
    for event in told:
        if frame := await _frame(call, following, event, draft):
            yield frame
    if told and isinstance(told[-1], Done | Failed):
        return
    async for event in watcher.events():
        if frame := await _frame(call, following, event, draft):
            yield frame
        if isinstance(event, Missed):
            return


async def _frame(
    call: Call, following: Following, event: TurnEvent, draft: Draft
) -> bytes:
    match event:
        case Done(result):
            ending = _answered(call, draft, result)
        case Failed(CutShort(), so_far):
            ending = _cut(call, draft, so_far)
        case Failed():
            ending = await _failed(call, draft, event)
        case Missed(count):
            lost = f"{count} events were lost: they were not read fast enough"
            at, error = call.host.clock.time(), fault_of(TurnFailed(lost))
            ending = Ending("failed", at, error=error)
        case _:
            return following.one(event)
    return following.end(ending)


async def _failed(call: Call, draft: Draft, event: Failed) -> Ending:
    """Tell why it failed; that is kept right behind the turn's end."""
    so_far, at = event.so_far, call.host.clock.time()
    status = "cancelled" if isinstance(event.error, Cancelled) else "failed"
    ending = broken_off(draft, status, so_far.text, so_far.usage, at)
    ending = replace(ending, error=fault_of(event.error))
    if draft.row is not None and status == "failed":
        from .writes import put

        labels = draft.turn.context.labels
        columns = columns_of(ending, labels)
        row = {**draft.row, **columns, "id": id_of(draft.turn.id)}
        # Its client is told in any case.
        with suppress(AgentHostError):
            await call.host.store.write(partial(put, row=row))
    return ending


def _leave(watcher: Watcher) -> None:
    # Whoever else reads the turn keeps it going.
    if watcher.leave() and watcher.turn.options.turn_id is None:
        watcher.turn.cancel(LEFT)
