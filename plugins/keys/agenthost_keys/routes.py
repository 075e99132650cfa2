"""``/api/keys``: list, make and revoke the named keys."""

from __future__ import annotations

from uuid import UUID, uuid4

from agenthost import (
    Answer,
    Call,
    Denied,
    InvalidInput,
    NotFound,
    RouteGroup,
    authorize,
    timestamp,
)

from .keyring import KIND, keyring_of
from .rows import Key
from .scopes import may_hand_out
from .shapes import CreatedKey, CreateKey, Gone, KeyItem, KeyList, Status
from .tokens import digest_of, make_token

ADMIN = "keys:admin"
OWN = "keys:own"

routes = RouteGroup("keys.keys")


@routes.get("/api/keys", scope=ADMIN, answer=KeyList)
async def list_keys(call: Call) -> Answer:
    """List the named keys without their secrets; revoked ones for 90 days."""
    now = call.host.clock.time()
    rows = [_item(key, now) for key in await keyring_of(call.host).listed(call.host)]
    return {"keys": rows, "total": len(rows)}


@routes.post(
    "/api/keys", scope=ADMIN, cost=10, body=CreateKey, answer=CreatedKey, status=201
)
async def create_key(call: Call, body: CreateKey) -> Answer:
    """Make a named key; its text is in this answer and nowhere else."""
    host, key_id = call.host, uuid4()
    now = host.clock.time()
    expires_at = body.expires_at.timestamp() if body.expires_at is not None else None
    if expires_at is not None and expires_at <= now:
        raise InvalidInput("expires_at", "must lie ahead")
    token = make_token(key_id)
    key = Key(
        id=str(key_id),
        name=body.name,
        hash=digest_of(token),
        scopes=tuple(dict.fromkeys(body.scopes)),
        person=await _person(call, body.person),
        expires_at=expires_at,
        units_per_minute=body.units_per_minute,
        created_at=now,
        owner=f"{call.principal.kind}:{call.principal.name}",
    )
    _check_rights(call, key)
    await keyring_of(host).add(host, call.context, key)
    return {"id": key.id, "name": key.name, "key": token}


@routes.delete("/api/keys/<key_id>", scope=OWN, answer=Gone)
async def revoke_key(call: Call, key_id: UUID) -> Answer:
    """Revoke a key; one that is not ``admin`` may revoke itself."""
    keyring = keyring_of(call.host)
    own = keyring.holder(call.principal)
    if own is None or own.id != str(key_id):
        authorize(call.principal, "route", ADMIN)
    await keyring.revoke(call.host, call.context, str(key_id))
    return {"status": "revoked", "id": str(key_id)}


async def _person(call: Call, person: UUID | None) -> str:
    if person is None:
        return ""
    try:
        return (await call.host.persons.get(str(person))).id
    except NotFound:
        raise InvalidInput(
            "person", "nobody has this id; GET /api/persons lists all"
        ) from None


def _check_rights(call: Call, key: Key) -> None:
    """Refuse a key that could do more, or for longer, than who makes it.

    Raises:
        Denied: It could.
    """
    if not may_hand_out(call.principal.grants, key.scopes):
        raise Denied("scopes: a key may not make one with more rights than its own")
    if call.principal.kind != KIND:
        return
    own = keyring_of(call.host).holder(call.principal)
    if own is None:
        # Revoked since it came in, perhaps by itself: its limits are gone with it.
        raise Denied("the key that asks holds no more")
    for field, mine, wanted in (
        ("expires_at", own.expires_at, key.expires_at),
        ("units_per_minute", own.units_per_minute, key.units_per_minute),
    ):
        if mine is not None and (wanted is None or wanted > mine):
            raise Denied(f"{field}: a key may not make one with more than its own")


def _item(key: Key, now: float) -> KeyItem:
    return {
        "id": key.id,
        "name": key.name,
        "status": _status(key, now),
        "scopes": list(key.scopes),
        "person": key.person or None,
        "units_per_minute": key.units_per_minute,
        "created_at": timestamp(key.created_at),
        "created_by": key.owner,
        "expires_at": _moment(key.expires_at),
        "last_used_at": _moment(key.last_used_at),
        "revoked_at": _moment(key.revoked_at),
    }


def _status(key: Key, now: float) -> Status:
    if key.revoked_at is not None:
        return "revoked"
    expired = key.expires_at is not None and key.expires_at <= now
    return "expired" if expired else "active"


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
