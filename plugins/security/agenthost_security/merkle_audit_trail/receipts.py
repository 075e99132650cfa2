"""Receipts of answers: an entry about the answer, its proof, and a signature."""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from agenthost import (
    Event,
    Host,
    JsonObject,
    Keep,
    Role,
    Turn,
    TurnResult,
    Unavailable,
    timestamp,
)

from .kept import digest_of
from .proofs import proof_of
from .signing import RECEIPT_TAG
from .system import trail_of
from .trail import Trail

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION = 1
MOST_TOOLS = 64


class ReceiptIssued(Event):
    """What an agent answered was attested; the subject is the turn's id."""

    agent_id: str
    agent: str
    model: str
    question: dict[str, Any]
    answer: dict[str, Any]
    tools: list[str]
    policy: dict[str, Any]
    times: dict[str, Any]
    finish: str


async def issue(host: Host, turn: Turn, result: TurnResult) -> JsonObject:
    """Give the receipt of a turn that has ended with this answer.

    Raises:
        AgentHostError: The trail takes nothing now.
    """
    trail = trail_of(host)
    event = await _event(host, turn, result)
    keep = host.events.keeping(event)
    if keep is None:
        raise Unavailable("the audit trail is not open; ask without X-Receipt")
    entry_id = await host.store.write(partial(_written, keep=keep, trail=trail))
    host.events.publish(event)
    proof = await proof_of(trail, entry_id)
    raw = bytes.fromhex(proof.pop("canonical"))
    signature = (await trail.key()).sign(RECEIPT_TAG, raw)
    statement = json.loads(proof["entry"]["details"])
    told = {"version": VERSION, "statement": statement, "signature": signature}
    return {**told, **proof}


async def _event(host: Host, turn: Turn, result: TurnResult) -> ReceiptIssued:
    now = host.clock.time()
    agent = turn.agent
    said = await host.journal.said(agent.session_id, turn.id)
    asked = [entry.at for entry in said if entry.message.role is Role.USER]
    times = {"attested": timestamp(now)}
    if said:
        times["asked"] = timestamp(asked[0] if asked else said[0].at)
        times["answered"] = timestamp(said[-1].at)
    uses = [use.name for message in turn.spoken for use in message.tool_uses]
    return ReceiptIssued(
        turn.id,
        now,
        agent_id=agent.id,
        agent=agent.name,
        model=result.model,
        question=digest_of(turn.message.text),
        answer=digest_of(result.text),
        tools=uses[:MOST_TOOLS],
        policy=_policy(host, turn),
        times=times,
        finish=result.finish.value if result.finish else "",
        **turn.context.caused,
    )


def _policy(host: Host, turn: Turn) -> dict[str, Any]:
    """Tell under what rules it was answered: the protections, and the manifest."""
    manifest = turn.agent.manifest.model_dump_json()
    active = [s.name for s in host.registry.systems() if s.active]
    return {
        "agenthost": host.version,
        "manifest": sha256(manifest.encode("utf-8", "replace")).hexdigest(),
        "systems": active,
        "labels": sorted(turn.context.labels),
    }


def _written(connection: Connection, keep: Keep, trail: Trail) -> int:
    keep(connection)
    trail.flush(connection)
    return trail.appended
