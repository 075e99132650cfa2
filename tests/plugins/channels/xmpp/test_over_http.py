"""A daemon answers a person and a room, once, across a restart and a break."""

from pathlib import Path

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.contract import Room
from agenthost_channels.testing.stages.xmpp import PASSWORD, ROOM, ProsodyStage, prosody

from ..webhook.program import opened

ROWS = "SELECT peer, state FROM channel_inbox ORDER BY seq"


async def started(
    daemons: Daemons, stage: ProsodyStage, home: Path | None = None, more: str = ""
) -> RunningDaemon:
    config = (
        '[channels.xmpp]\nagent = "helper"\nallow_from = ["ada@localhost"]\n'
        'allowed_hosts = ["127.0.0.1"]\njid = "bot@localhost"\n'
        f'server = "127.0.0.1"\nport = {stage.cable.port}\ntls = "none"\n'
        f'rooms = ["{ROOM}"]\nnick = "bot"\n{more}'
    )
    environ = {"XMPP_PASSWORD": PASSWORD}
    running = await daemons.start(config=config, environ=environ, home=home)
    if not len(running.daemon.agents):
        await running.agent("helper")
    await opened(running, "xmpp")
    return running


@pytest.mark.conformance
async def test_people_are_answered_once_across_breaks(
    daemons: Daemons, tmp_path: Path
) -> None:
    async with prosody(tmp_path) as stage:
        first = await started(daemons, stage)
        first.model.says("hello *Ada*")
        await stage.say("hi")
        assert await stage.seen(1) == ["hello _Ada_"]
        await stage.say("nobody is asked", Room.PUBLIC)
        await first.daemon.stop()
        await stage.say("while you were away")
        await stage.say("bot: and here?", Room.PUBLIC)
        again = await started(daemons, stage, first.daemon.home)
        # Answered at once, by what the model says where nothing else is told.
        assert (await stage.seen(2))[1:] == ["You said: while you were away"]
        assert await stage.seen(1, Room.PUBLIC) == ["You said: and here?"]
        await stage.cut()
        await stage.say("and after a break")
        assert (await stage.seen(3))[2:] == ["You said: and after a break"]
        asked = len(first.model.requests) + len(again.model.requests)
        assert asked == 4
        kept = await again.daemon.store.read(ROWS)
        peers = sorted(row[0] for row in kept)
        assert peers == [*["ada@localhost"] * 3, ROOM]
        await again.daemon.stop()
