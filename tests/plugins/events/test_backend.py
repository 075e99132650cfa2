"""What the events plugin offers, and its work in a daemon."""

from __future__ import annotations

import agenthost_events
from agenthost import Custom, Event
from agenthost.testing import Daemons


def test_register_backend_offers_the_bus_of_one_process() -> None:
    [spec] = agenthost_events.register_backend()
    assert (spec.port, spec.name) == ("events", "memory")


async def test_a_subscriber_of_a_daemon_hears_what_is_published(
    daemons: Daemons,
) -> None:
    running = await daemons.start()
    heard: list[Event] = []
    running.daemon.events.subscribe(heard.append)
    running.daemon.events.publish(Custom("Ada", 0.0, "greeted", {}))
    assert [event.subject for event in heard] == ["Ada"]
