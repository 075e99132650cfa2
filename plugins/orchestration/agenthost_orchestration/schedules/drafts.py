"""Schedules out of what a request says, and how they are shown."""

from __future__ import annotations

from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING, Any

from agenthost import (
    Host,
    InvalidInput,
    NotFound,
    Principal,
    authorize,
    timestamp,
)

from ..background.errands import Delivery, Errand, Occasion, SessionMode
from ..background.rights import creator_of
from .schedule import Misfire, Schedule
from .settings import SchedulesSection
from .times import Times
from .when import When

if TYPE_CHECKING:
    from .shapes import (
        ChangeSchedule,
        OccasionItem,
        ScheduleItem,
        WhatBody,
        WhatItem,
        WhenBody,
        WhenItem,
        Within,
    )

USD = 1_000_000
ROLLING = 20
FIELDS = {"cron": "when.cron", "zone": "when.zone"}
"""What is wrong in a schedule's times, as a request names it."""


def blank(host: Host, principal: Principal) -> Schedule:
    """Give a schedule with every default, that says nothing yet."""
    allowance = host.settings(SchedulesSection).allowance_usd
    errand = Errand(
        creator_of(host, principal), keep=ROLLING, allowance_micro_usd=micro(allowance)
    )
    return Schedule("", "", When(), errand)


def micro(usd: float) -> int:
    """Give US dollars as micro-USD."""
    return round(usd * USD)


def changed(
    host: Host, principal: Principal, before: Schedule, body: ChangeSchedule
) -> Schedule:
    """Give a schedule with what a request says of it.

    Whoever changes what it does, or when, answers for it from then on.

    Raises:
        InvalidInput: Something is wrong, named as the request has it.
        Denied: The principal may not do what it is to do.
    """
    said = body.model_fields_set - {"enabled"}
    draft = before
    if said:
        creator = creator_of(host, principal)
        draft = replace(before, errand=replace(before.errand, creator=creator))
    if body.name is not None:
        draft = replace(draft, name=body.name)
    if body.misfire is not None:
        draft = replace(draft, misfire=_misfire(body.misfire))
    if body.enabled is not None:
        draft = replace(draft, enabled=body.enabled)
    draft = replace(draft, when=_when(host, draft.when, body))
    draft = replace(draft, errand=_errand(host, draft.errand, body))
    if said:
        _check_rights(principal, draft.errand)
    return draft


def _when(host: Host, before: When, body: ChangeSchedule) -> When:
    when = before
    if body.when is not None:
        now = floor(host.clock.time())
        when = replace(_spoken(body.when, float(now)), quiet=before.quiet)
    if body.quiet_hours is not None:
        when = replace(when, quiet=body.quiet_hours)
    try:
        Times(when)
    except InvalidInput as error:
        problem = error.message.removeprefix(f"{error.field}: ")
        raise InvalidInput(FIELDS.get(error.field, error.field), problem) from error
    return when


def _spoken(body: WhenBody, now: float) -> When:
    return When(
        cron=body.cron or "",
        every=body.every_secs or 0,
        at=None if body.at is None else body.at.timestamp(),
        zone=body.zone,
        anchor=now if body.every_secs else 0.0,
    )


def _errand(host: Host, before: Errand, body: ChangeSchedule) -> Errand:
    errand = before
    if body.what is not None:
        errand = replace(errand, **_what(host, body.what))
    if body.session is not None:
        errand = replace(errand, session=SessionMode(body.session))
    if body.keep is not None:
        errand = replace(errand, keep=body.keep)
    if body.delivery is not None:
        errand = replace(
            errand, delivery=Delivery(body.delivery.kind, body.delivery.target)
        )
    if body.allowance_usd is not None:
        errand = replace(errand, allowance_micro_usd=micro(body.allowance_usd))
    return errand


def _what(host: Host, what: WhatBody) -> dict[str, Any]:
    agent_id = ""
    if what.agent is not None:
        try:
            agent_id = host.agents.find(what.agent).id
        except NotFound:
            raise InvalidInput(
                "what.agent", f"no agent has the id or name {what.agent!r}"
            ) from None
    event = None
    if what.event is not None:
        event = {"type": what.event, "data": what.data}
    return {
        "agent_id": agent_id,
        "prompt": what.prompt or "",
        "workflow_id": what.workflow or "",
        "input": what.input,
        "event": event,
    }


def _misfire(said: str | Within) -> Misfire:
    if isinstance(said, str):
        return Misfire(said, 0)
    return Misfire("within", said.within_secs)


def _check_rights(principal: Principal, errand: Errand) -> None:
    """Refuse to keep what the principal could not do itself.

    Raises:
        Denied: It has no right to.
    """
    if errand.agent_id:
        authorize(principal, "route", "agents:message")
    elif errand.workflow_id:
        authorize(principal, "route", "workflows:run")
    else:
        authorize(principal, "route", "events:write")


def shown(schedule: Schedule) -> ScheduleItem:
    """Show a schedule."""
    errand, misfire = schedule.errand, schedule.misfire
    late = misfire.policy == "within"
    return {
        "id": schedule.id,
        "name": schedule.name,
        "when": _when_shown(schedule.when),
        "what": _what_shown(errand),
        "session": errand.session.value,
        "keep": errand.keep,
        "misfire": {"within_secs": misfire.within} if late else misfire.policy,  # type: ignore[typeddict-item]  # reason: skip or once
        "delivery": {"kind": errand.delivery.kind, "target": errand.delivery.target},
        "allowance_usd": errand.allowance_micro_usd / USD,
        "quiet_hours": schedule.when.quiet,
        "enabled": schedule.enabled,
        "paused": schedule.paused or None,
        "origin": schedule.origin or ("agent" if schedule.by_agent else "api"),  # type: ignore[typeddict-item]  # reason: manifest
        "creator": {"kind": errand.creator.kind, "name": errand.creator.name},
        "next_at": _moment(schedule.next_at),
        "created_at": timestamp(schedule.created_at),
        "updated_at": timestamp(schedule.updated_at),
    }


def _when_shown(when: When) -> WhenItem:
    shown: WhenItem = {"zone": when.zone}
    if when.cron:
        shown["cron"] = when.cron
    elif when.every:
        shown["every_secs"] = when.every
    elif when.at is not None:
        shown["at"] = timestamp(when.at)
    return shown


def _what_shown(errand: Errand) -> WhatItem:
    if errand.agent_id:
        return {"agent_id": errand.agent_id, "prompt": errand.prompt}
    if errand.workflow_id:
        return {"workflow": errand.workflow_id, "input": errand.input}
    event = errand.event or {}
    return {"event": event["type"], "data": event["data"]}


def occasion_shown(occasion: Occasion) -> OccasionItem:
    """Show what became of a time."""
    return {
        "id": occasion.id,
        "key": occasion.key,
        "at": timestamp(occasion.at),
        "state": occasion.state.value,
        "detail": occasion.detail,
        "code": occasion.code,
        "turn_id": occasion.turn_id or None,
        "run_id": occasion.run_id or None,
        "text": occasion.text,
        "cost_usd": occasion.cost_micro_usd / USD,
        "delivered": occasion.delivered,
        "created_at": timestamp(occasion.created_at),
        "ended_at": _moment(occasion.ended_at),
    }


def _moment(at: float | None) -> str | None:
    return None if at is None else timestamp(at)
