"""What becomes of triggers is told, and may be kept in the commit of it."""

from __future__ import annotations

from typing import Any

from agenthost import Denied, Event, Keep
from agenthost_orchestration.triggers.events import TriggerEvent, TriggerFired
from sqlalchemy import Connection

from .stage import Stage


class Book:
    """Notes what is kept and what is told, in order."""

    def __init__(self, stage: Stage) -> None:
        self.notes: list[tuple[str, str]] = []
        self.events: list[Any] = []
        events = stage.daemon.daemon.events
        events.record(self.keep, TriggerEvent)
        events.subscribe(self.tell, TriggerEvent)

    def keep(self, event: Event) -> Keep:
        def note(connection: Connection) -> None:
            assert connection.in_transaction()
            self.notes.append(("kept", event.kind))

        return note

    def tell(self, event: Event) -> None:
        self.events.append(event)
        self.notes.append(("told", event.kind))


def both(*kinds: str) -> list[tuple[str, str]]:
    return [(how, kind) for kind in kinds for how in ("kept", "told")]


async def test_each_change_is_kept_in_its_commit_and_told_after_it(
    stage: Stage,
) -> None:
    book = Book(stage)
    trigger = await stage.trigger()
    await stage.change(trigger, max_fires=3)
    await stage.cause(stage.custom(by="operator:operator", depth=1))
    await stage.settled()
    await stage.triggers.pause(stage.daemon.daemon, trigger, "no money")
    await stage.daemon.http.delete(f"/api/triggers/{trigger}")
    assert book.notes == both(
        "trigger_created",
        "trigger_changed",
        "trigger_fired",
        "trigger_changed",
        "trigger_deleted",
    )
    assert {event.subject for event in book.events} == {trigger}
    assert {event.agent_id for event in book.events} == {stage.agent.id}
    [fired] = [each for each in book.events if isinstance(each, TriggerFired)]
    assert (fired.by, fired.depth) == ("operator:operator", 2)
    whom = [event.by for event in book.events if event is not fired]
    assert whom == ["loopback:loopback"] * 2 + ["plugin:orchestration"] + whom[:1]


async def test_the_end_of_an_agent_is_told_of_each_of_its_triggers(
    stage: Stage,
) -> None:
    triggers = {await stage.trigger(), await stage.trigger("system")}
    book = Book(stage)
    await stage.daemon.http.delete(f"/api/agents/{stage.agent.id}")
    await stage.settled()
    assert sorted(book.notes) == sorted(both("trigger_deleted", "trigger_deleted"))
    assert {event.subject for event in book.events} == triggers


async def test_a_firing_that_is_held_back_is_neither_kept_nor_told(
    stage: Stage,
) -> None:
    await stage.trigger()
    book = Book(stage)
    one, two = stage.custom(), stage.custom()
    keeps = [stage.asked(one), stage.asked(two)]
    for keep in keeps:
        assert keep is not None
        await stage.daemon.daemon.store.write(keep)
    await stage.settled()
    await stage.cause(stage.custom(depth=5))
    await stage.settled()
    assert book.notes == both("trigger_fired")
    assert stage.woken == 1


async def test_what_somebody_refuses_does_not_become(stage: Stage) -> None:
    def refuse(event: Event) -> None:
        raise Denied(f"no {event.kind}")

    stage.daemon.daemon.events.record(refuse, TriggerEvent)
    body = {"agent_id": stage.agent.id, "pattern": "all"}
    answer = await stage.daemon.http.post("/api/triggers", json=body)
    assert answer.status_code == 403
    assert (await stage.daemon.http.get("/api/triggers")).json() == []
