"""A daemon answers in a topic, through its own way out, and across breaks."""

from pathlib import Path

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.simulators.ntfy import TOKEN, NtfySimulator

from ..webhook.program import opened

ROWS = "SELECT message_id, state FROM channel_inbox ORDER BY seq"


async def started(
    daemons: Daemons, server: NtfySimulator, home: Path | None = None
) -> RunningDaemon:
    config = (
        '[channels.ntfy]\nagent = "helper"\nallow_from = ["ada"]\n'
        f'allowed_hosts = ["127.0.0.1"]\nserver = "{server.url}"\n'
        'topics = ["ada", "eve"]\n'
    )
    environ = {"NTFY_TOKEN": TOKEN}
    running = await daemons.start(config=config, environ=environ, home=home)
    if not len(running.daemon.agents):
        await running.agent("helper")
    await opened(running, "ntfy")
    return running


async def answers(server: NtfySimulator, count: int) -> list[str]:
    def ours() -> list[str]:
        tagged = [each for each in server.kept if "agenthost" in each.get("tags", ())]
        return [str(each["message"]) for each in tagged]

    await server.until(lambda: len(ours()) >= count)
    return ours()


@pytest.mark.conformance
async def test_a_topic_is_answered_once_across_breaks(daemons: Daemons) -> None:
    async with NtfySimulator() as server:
        first = await started(daemons, server)
        first.model.says("hello Ada")
        one = await server.put("ada", message="hi")
        await server.put("eve", message="hi from a topic that may not speak")
        assert await answers(server, 1) == ["hello Ada"]
        await first.daemon.stop()
        two = await server.put("ada", message="while you were away")
        again = await started(daemons, server, first.daemon.home)
        # It may answer before anybody could tell it what to say.
        echo = "You said: while you were away"
        assert await answers(server, 2) == ["hello Ada", echo]
        again.model.says("still here")
        server.cut()
        three = await server.put("ada", message="and after a break")
        assert (await answers(server, 3))[2:] == ["still here"]
        kept = await again.daemon.store.read(ROWS)
        assert [row[0] for row in kept] == [each["id"] for each in (one, two, three)]
        asked = len(first.model.requests) + len(again.model.requests)
        assert asked == 3
        assert len(server.queries) >= 3
        await again.daemon.stop()
