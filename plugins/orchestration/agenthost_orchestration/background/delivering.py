"""Delivery of results: an outcome of its own, never a failure of what was done."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from agenthost import (
    AgentHostError,
    Context,
    DeliverySpec,
    Event,
    Host,
    OutcomeUnknown,
    Parcel,
    Unavailable,
    within,
)

from .errands import Occasion, OccasionState
from .events import OccasionDelivered
from .into_session import append
from .outcomes import keeps_of
from .rights import principal_of
from .rows import Kept, Terms
from .webhook import post

log = logging.getLogger(__name__)

DONE = "done"
DELIVERED = frozenset({OccasionState.DONE, OccasionState.FAILED})
UNKNOWN = "unknown: the process died while it was delivered"
LONGEST = 300.0
LONGEST_REASON = 500
OWN: Mapping[str, DeliverySpec] = {
    "session": DeliverySpec("session", append, repeatable=True, timeout=LONGEST),
    "webhook": DeliverySpec("webhook", post, repeatable=True, timeout=LONGEST),
}


def way_of(host: Host, kind: str) -> DeliverySpec | None:
    """Find a way by its name: one of our own, or one that a plugin offers."""
    offered = {spec.name: spec for _, spec in host.registry.offered(DeliverySpec)}
    return OWN.get(kind) or offered.get(kind)


async def deliver_once(host: Host, kept: Kept) -> str:
    """Deliver what came of an occasion, unless that was done; give what is kept of it.

    What may have arrived already is sent again only where its receiver can tell.
    """
    from .writes import note

    occasion, terms = kept.occasion, kept.terms
    if terms is None or terms.delivery.kind == "none":
        return ""
    if occasion.state not in DELIVERED or occasion.delivered not in {"", UNKNOWN}:
        return occasion.delivered
    way = way_of(host, terms.delivery.kind)
    if occasion.delivered and not (way is not None and way.repeatable):
        return occasion.delivered
    noting = partial(note, occasion_id=occasion.id)
    # As long as nobody can say more, this is what is so.
    await host.store.write(partial(noting, values={"delivered": UNKNOWN}))
    said = await deliver(host, occasion, terms, way)
    event = _event(host, occasion, terms, said)
    values = {"delivered": said}
    await host.store.write(partial(noting, values=values), *keeps_of(host, event))
    host.events.publish(event)
    if said != DONE:
        log.warning("occasion %s was not delivered: %s", occasion.id, said)
    return said


async def deliver(
    host: Host, occasion: Occasion, terms: Terms, way: DeliverySpec | None
) -> str:
    """Deliver what came of an occasion; say ``done``, or why not, in a line."""
    kind = terms.delivery.kind
    if way is None:
        return f"no plugin offers the delivery {kind!r}"
    try:
        # Whoever may do nothing any more sends nothing either.
        principal = await principal_of(host, terms.creator)
    except AgentHostError as error:
        return error.message
    try:
        context = Context(principal, labels=occasion.labels, depth=terms.depth)
        parcel = parcel_of(occasion, terms, context)
        await within(way.timeout, f"delivery {kind}", way.deliver(host, parcel))
    except (OutcomeUnknown, Unavailable) as error:
        # What took too long may have arrived all the same.
        return f"unknown: {error.message}"[:LONGEST_REASON]
    except AgentHostError as error:
        return (error.message or error.code)[:LONGEST_REASON]
    except Exception:
        # What a plugin raises says nothing that people should read.
        log.exception("delivery %s of occasion %s failed", kind, occasion.id)
        return f"the delivery {kind!r} failed; the log says more"
    return DONE


def _event(host: Host, occasion: Occasion, terms: Terms, said: str) -> Event:
    state = occasion.state.value
    return OccasionDelivered(
        occasion.source_id,
        host.clock.time(),
        occasion_id=occasion.id,
        kind_of_source=occasion.source,
        state=state,
        detail=said,
        turn_id=occasion.turn_id,
        run_id=occasion.run_id,
        cost_micro_usd=occasion.cost_micro_usd,
        by=f"{terms.creator.kind}:{terms.creator.name}",
        source=occasion.agent_id,
        depth=terms.depth,
    )


def parcel_of(occasion: Occasion, terms: Terms, context: Context) -> Parcel:
    """Pack what came of an occasion."""
    facts = {
        "source": occasion.source,
        "source_id": occasion.source_id,
        "at": occasion.at,
        "state": occasion.state.value,
        "detail": occasion.detail,
        "agent_id": occasion.agent_id,
        "turn_id": occasion.turn_id,
        "run_id": occasion.run_id,
        "cost_micro_usd": occasion.cost_micro_usd,
        "labels": sorted(occasion.labels),
    }
    text = occasion.text or occasion.detail
    return Parcel(occasion.id, terms.delivery.target, text, context, facts)
