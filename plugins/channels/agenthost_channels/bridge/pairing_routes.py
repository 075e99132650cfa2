"""``/api/channels/{id}/pairings``: strangers who ask to be let in, and your answer."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from agenthost import (
    Answer,
    Call,
    Conflict,
    Host,
    NotFound,
    Person,
    RouteGroup,
    telling,
    timestamp,
)
from agenthost_toml.types import Table
from pydantic import Field
from typing_extensions import TypedDict

from . import tables, writes
from .admission import KIND, external
from .bridge import bridge_of
from .events import ChannelPaired

ADMIN = "persons:admin"
WELCOME = "You can talk to me now."
LONGEST_NAME = 64

routes = RouteGroup("channels.pairings")


class PairingRow(TypedDict):
    """A code that a stranger was given; ``sender`` is the service's id of them."""

    code: str
    sender: str
    name: str
    asked_at: str
    expires_at: str


class PairingList(TypedDict):
    """``GET /api/channels/{id}/pairings``."""

    pairings: list[PairingRow]
    total: int


class ConfirmPairing(Table):
    """``POST /api/channels/{id}/pairings/{code}/approve``."""

    person: UUID | None = Field(
        None, description="Who it is, of `/api/persons`; a new person by default."
    )


class Paired(TypedDict):
    """Who may speak from now on, and as which person."""

    sender: str
    person_id: str
    person_name: str


class PairingGone(TypedDict):
    """A code that was taken away."""

    status: str
    code: str


@routes.get("/api/channels/<channel>/pairings", scope=ADMIN, answer=PairingList)
async def list_pairings(call: Call, channel: str) -> Answer:
    """List who asks to be let in, the oldest first."""
    rows = [_item(row) for row in await _pending(call.host, channel)]
    return {"pairings": rows, "total": len(rows)}


@routes.post(
    "/api/channels/<channel>/pairings/<code>/approve",
    scope=ADMIN,
    body=ConfirmPairing,
    answer=Paired,
)
async def approve_pairing(
    call: Call, channel: str, code: str, body: ConfirmPairing
) -> Answer:
    """Let in who was given this code, as a person; they are told."""
    host = call.host
    row = await _found(host, channel, code)
    person = await _person(host, row, None if body.person is None else str(body.person))
    await host.persons.link(KIND, external(channel, row["sender"]), person.id)
    facts = (channel, host.clock.time(), row["sender"], person.id)
    with telling(host.events, ChannelPaired, *facts, **call.context.caused) as keep:
        also = () if keep is None else (keep,)
        close = partial(writes.close_pairing, channel=channel, code=row["code"])
        await host.store.write(close, *also)
    account = bridge_of(host).accounts.get(channel)
    if account is not None:
        await account.tell(row, WELCOME)
    told = {"sender": row["sender"], "person_id": person.id}
    return {**told, "person_name": person.name}


@routes.delete(
    "/api/channels/<channel>/pairings/<code>", scope=ADMIN, answer=PairingGone
)
async def reject_pairing(call: Call, channel: str, code: str) -> Answer:
    """Take a code away; who has it may ask again."""
    row = await _found(call.host, channel, code)
    close = partial(writes.close_pairing, channel=channel, code=row["code"])
    await call.host.store.write(close)
    return {"status": "rejected", "code": row["code"]}


async def _pending(host: Host, channel: str) -> Any:
    where = {"channel": channel, "now": host.clock.time()}
    return await host.store.read(tables.PENDING, where)


async def _found(host: Host, channel: str, code: str) -> Any:
    """Find a code, in any case, or raise NotFound."""
    for row in await _pending(host, channel):
        if row["code"] == code.upper():
            return row
    raise NotFound("pairing", code)


async def _person(host: Host, row: Any, known: str | None) -> Person:
    """Find the person, or add one by the name that the service shows."""
    if known is not None:
        return await host.persons.get(known)
    shown = "".join(sign for sign in row["name"] if sign.isprintable()).strip()
    unique = f"{row['channel']} {row['sender']}"
    for name in (shown[:LONGEST_NAME], unique):
        if name:
            try:
                return await host.persons.add(name, "member")
            except Conflict:
                # Somebody is called so already, and a name proves nothing.
                continue
    raise Conflict(f"a person called {unique!r} is there; name a person in the body")


def _item(row: Any) -> PairingRow:
    return {
        "code": row["code"],
        "sender": row["sender"],
        "name": row["name"],
        "asked_at": timestamp(row["asked_at"]),
        "expires_at": timestamp(row["expires_at"]),
    }
