"""What an agent's tools may transfer within an hour."""

from __future__ import annotations

import pytest
from agenthost import QuotaExceeded
from agenthost.testing import Daemons
from agenthost_egress.traffic import HOUR, Meter, Traffic

from .wire import Wire, always, answer

BODY = b"x" * 40_000
CONFIG = '[web.fetch]\nallowed_hosts = ["127.0.0.1"]\n'


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    now = [0.0]
    meter = Meter(lambda: now[0])
    meter.limit = 100
    for size in (60, 40):
        meter.add(size)
        now[0] += 90.0
    with pytest.raises(QuotaExceeded, match="101 bytes of 100"):
        meter.add(1)
    now[0] = HOUR + 10.0
    meter.add(50)
    with pytest.raises(QuotaExceeded):
        meter.add(60)


def test_who_is_no_agent_has_no_limit() -> None:
    assert Traffic().of(None) is None


@pytest.mark.manifest("resources.max_network_bytes_per_hour")
async def test_an_agent_transfers_no_more_than_its_manifest_says(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start(config=CONFIG)
    limit = "resources.max_network_bytes_per_hour = 50_000"
    ada = await daemon.agent("ada", tools=["web_fetch"], extra=limit)
    bob = await daemon.agent("bob", tools=["web_fetch"])
    texts = []
    async with Wire(always(answer(BODY))) as wire:
        for agent in (ada, ada, ada, bob, bob):
            daemon.model.calls("web_fetch", url=wire.url)
            await agent.ask("go")
            (output,) = daemon.model.requests[-1].messages[-1].parts
            texts.append("leaves no room" in getattr(output, "text", ""))
    assert texts == [False, True, True, False, False]
    # Once it has nothing left, nothing is asked for either.
    assert len(wire.heard) == 4
