"""``/api/triggers`` and ``/api/events``."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from agenthost import (
    Answer,
    Call,
    Host,
    InvalidInput,
    RouteGroup,
    timestamp,
)

from ..background.errands import Delivery, SessionMode
from ..background.rights import creator_of
from ..background.routes import item_of
from ..background.shapes import OccasionList
from ..orchestration import orchestration_of
from .patterns import pattern_of
from .publishing import publish
from .sentences import MOST_PLACES, PLACES
from .shapes import (
    ChangeTrigger,
    CreatedTrigger,
    CreateTrigger,
    DeliveryBody,
    ListQuery,
    OccasionsQuery,
    PublishedEvent,
    PublishEvent,
    TriggerItem,
    TriggerStatus,
)
from .trigger import Trigger
from .triggers import Triggers

READ = "triggers:read"
WRITE = "triggers:write"

routes = RouteGroup("orchestration.triggers")


@routes.get("/api/triggers", scope=READ, query=ListQuery, answer=list[TriggerItem])
async def list_triggers(call: Call, query: ListQuery) -> Answer:
    """List the triggers, or those of an agent, oldest first."""
    triggers = _triggers(call.host)
    agent_id = str(query.agent_id) if query.agent_id else None
    return [_item(triggers, each) for each in triggers.list(agent_id)]


@routes.post(
    "/api/triggers",
    scope=WRITE,
    body=CreateTrigger,
    answer=CreatedTrigger,
    status=201,
)
async def create_trigger(call: Call, body: CreateTrigger) -> Answer:
    """Have an agent told of events, with the rights of who asks for it."""
    trigger = Trigger(
        id=str(uuid4()),
        agent_id=str(body.agent_id),
        pattern=pattern_of(body.pattern),
        prompt_template=_template(body.prompt_template),
        creator=creator_of(call.host, call.principal),
        created_at=call.host.clock.time(),
        enabled=body.enabled,
        paused="" if body.enabled else f"disabled by {call.context.owner}",
        max_fires=body.max_fires,
        cooldown_secs=body.cooldown_secs,
        session=SessionMode(body.session),
        keep=body.keep,
        delivery=Delivery(*_delivery(body.delivery)),
        allowance_micro_usd=_micro_usd(body.allowance_usd),
        own_events=body.own_events,
    )
    made = await _triggers(call.host).create(call.context, trigger)
    return {"trigger_id": made.id, "agent_id": made.agent_id}


@routes.get("/api/triggers/<trigger_id>", scope=READ, answer=TriggerItem)
async def get_trigger(call: Call, trigger_id: UUID) -> Answer:
    """Show a trigger."""
    triggers = _triggers(call.host)
    return _item(triggers, triggers.get(str(trigger_id)))


@routes.put(
    "/api/triggers/<trigger_id>",
    scope=WRITE,
    body=ChangeTrigger,
    answer=TriggerStatus,
)
async def change_trigger(call: Call, body: ChangeTrigger, trigger_id: UUID) -> Answer:
    """Change what is named; more fires than it has spent arm it again."""
    triggers, found = _triggers(call.host), str(trigger_id)
    triggers.get(found)
    changes = _changes(body, call.context.owner)
    await triggers.change(call.context, found, changes)
    return {"status": "updated", "trigger_id": found}


@routes.delete("/api/triggers/<trigger_id>", scope=WRITE, answer=TriggerStatus)
async def delete_trigger(call: Call, trigger_id: UUID) -> Answer:
    """Delete a trigger; what it has set off goes on."""
    await _triggers(call.host).delete(call.context, str(trigger_id))
    return {"status": "removed", "trigger_id": str(trigger_id)}


@routes.get(
    "/api/triggers/<trigger_id>/occasions",
    scope=READ,
    query=OccasionsQuery,
    answer=OccasionList,
)
async def list_occasions(call: Call, query: OccasionsQuery, trigger_id: UUID) -> Answer:
    """Tell what became of a trigger's firings, the newest first."""
    orchestration = orchestration_of(call.host)
    source = orchestration.triggers
    source.get(str(trigger_id))
    found = await orchestration.background.list(
        source.kind, str(trigger_id), limit=query.limit
    )
    return {"occasions": [item_of(each) for each in found], "total": len(found)}


@routes.post(
    "/api/events", scope="events:write", body=PublishEvent, answer=PublishedEvent
)
async def publish_event(call: Call, body: PublishEvent) -> Answer:
    """Publish a custom event; what it sets off is on disk when this answers."""
    event = await publish(call.host, call.context, body.type, body.data)
    return {"status": "published", "event_id": event.id}


def _triggers(host: Host) -> Triggers:
    return orchestration_of(host).triggers


def _changes(body: ChangeTrigger, by: str) -> dict[str, Any]:
    """Give the columns that a request changes."""
    said: dict[str, Any] = body.model_dump(exclude_unset=True)
    for name, value in said.items():
        if value is None and name != "cooldown_secs":
            raise InvalidInput(name, "must not be null; leave it out to keep it")
    if body.pattern is not None:
        pattern = pattern_of(body.pattern)
        said |= {"pattern": pattern.name, "pattern_text": pattern.text}
    if body.prompt_template is not None:
        _template(body.prompt_template)
    if body.delivery is not None:
        kind, target = _delivery(body.delivery)
        said |= {"delivery": kind, "delivery_target": target}
    if body.allowance_usd is not None:
        said["allowance_micro_usd"] = _micro_usd(said.pop("allowance_usd"))
    if body.enabled is not None:
        why = "" if body.enabled else f"disabled by {by}"
        said |= {"enabled": int(body.enabled), "paused": why}
    if body.own_events is not None:
        said["own_events"] = int(body.own_events)
    return said


def _template(text: str) -> str:
    places = sum(1 for _ in PLACES.finditer(text))
    if places > MOST_PLACES:
        problem = f"has {places} places for the event; {MOST_PLACES} are the most"
        raise InvalidInput("prompt_template", problem)
    return text


def _delivery(delivery: DeliveryBody) -> tuple[str, str]:
    kind, target = delivery.kind, delivery.target
    if kind not in ("none", "session") and not target:
        raise InvalidInput("delivery.target", f"must say where {kind} goes")
    if kind == "webhook" and not target.startswith(("https://", "http://")):
        raise InvalidInput("delivery.target", "must be an http or https URL")
    return kind, target


def _micro_usd(dollars: float) -> int:
    return max(round(dollars * 1_000_000), 1)


def _item(triggers: Triggers, trigger: Trigger) -> TriggerItem:
    delivery = trigger.delivery
    return {
        "id": trigger.id,
        "agent_id": trigger.agent_id,
        "pattern": dict(trigger.pattern.form),
        "prompt_template": trigger.prompt_template,
        "enabled": trigger.enabled,
        "fire_count": trigger.fire_count,
        "max_fires": trigger.max_fires,
        "cooldown_secs": trigger.cooldown_secs,
        "session": trigger.session.value,
        "keep": trigger.keep,
        "delivery": {"kind": delivery.kind, "target": delivery.target},
        "allowance_usd": trigger.allowance_micro_usd / 1_000_000,
        "own_events": trigger.own_events,
        "paused_reason": trigger.paused or None,
        "held_back": triggers.held_back(trigger.id),
        "created_by": trigger.owner,
        "created_at": timestamp(trigger.created_at),
        "last_fired_at": _moment(trigger.last_fired_at),
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)
