"""Files go both ways over services, real ones where they are."""

from __future__ import annotations

import pytest
from agenthost.testing import Daemons
from agenthost_channels.testing.certifying import opened, place_of

from tests.faults.talks import environ_of, section_of

from .webhook.program import opened as connected

pytestmark = pytest.mark.conformance
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
PLAN = b"%PDF-1.7 a plan"


@pytest.mark.parametrize(
    "channel", ["telegram", "slack", "discord", "email", "matrix", "xmpp"]
)
async def test_a_file_comes_and_another_goes(daemons: Daemons, channel: str) -> None:
    place = place_of(channel)
    assert place is not None
    async with opened(place) as stage:
        environ = dict(environ_of(stage))
        running = await daemons.start(config=section_of(stage), environ=environ)
        agent = await running.agent("helper")
        await connected(running, channel)
        folder = running.daemon.data_dir / "workspaces" / agent.id
        folder.mkdir(parents=True)
        (folder / "plan.pdf").write_bytes(PLAN)
        running.model.says("Here is [the plan](plan.pdf).")
        await stage.attach("photo.png", "image/png", PICTURE)
        [(name, data)] = await stage.files_seen(1)
        assert (name, data) == ("plan.pdf", PLAN)
        asked = running.model.requests[-1].messages[-1].text
        path = asked.rpartition("[file ")[2].partition(":")[0]
        assert (folder / path).read_bytes() == PICTURE
        await running.daemon.stop()
