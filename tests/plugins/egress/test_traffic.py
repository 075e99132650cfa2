"""What an agent's tools may transfer within an hour."""

from __future__ import annotations

from random import Random

import pytest
from agenthost import QuotaExceeded
from agenthost.testing import Daemons, RunningDaemon
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


async def test_a_restart_forgets_nothing_of_it(daemons: Daemons) -> None:
    first = await daemons.start(config=CONFIG)
    limit = "resources.max_network_bytes_per_hour = 100_000"
    for name in ("ada", "bob"):
        await first.agent(name, tools=["web_fetch"], extra=limit)
    texts = []
    async with Wire(always(answer(BODY))) as wire:

        async def fetch(daemon: RunningDaemon, name: str) -> None:
            agent = daemon.daemon.agents.find(name)
            daemon.model.calls("web_fetch", url=wire.url)
            said = {"message": "go"}
            await daemon.http.post(f"/api/agents/{agent.id}/message", json=said)
            (output,) = daemon.model.requests[-1].messages[-1].parts
            texts.append("leaves no room" in getattr(output, "text", ""))

        daemon = first
        for _ in range(4):
            await fetch(daemon, "ada")
            await daemon.daemon.stop()
            daemon = await daemons.start(config=CONFIG, home=first.daemon.home)
        await fetch(daemon, "bob")
    assert texts == [False, False, True, True, False]


def test_what_is_kept_is_what_was_counted() -> None:
    dice, now, wall = Random(7), [50.0], 1_000_000.0
    whole, kept = Traffic(lambda: now[0]), Traffic(lambda: now[0])
    for _ in range(40):
        now[0] += dice.choice([1.0, 70.0, 400.0])
        for traffic in (whole, kept):
            meter = traffic.meter("a")
            meter.limit = 1 << 60
        size = dice.randrange(1000)
        whole.meter("a").add(size)
        kept.meter("a").add(size)
        rows = [
            (name, at, count)
            for name, slots in kept.changed(wall + now[0]).items()
            for at, count in slots
        ]
        kept = Traffic(lambda: now[0])
        kept.recall(wall + now[0], rows)
        assert [size for _, size in kept.meter("a").slots] == [
            size for _, size in whole.meter("a").slots
        ]
    assert not kept.changed(wall + now[0])
    kept.unwritten(["a", "nobody"])
    assert [*kept.changed(wall + now[0])] == ["a"]
