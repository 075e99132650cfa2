"""A daemon answers posts and direct messages, and across breaks."""

from pathlib import Path

import pytest
from agenthost.testing import Daemons, RunningDaemon
from agenthost.testing.simulators.bluesky import PASSWORD, BlueskySimulator

from ..webhook.program import opened

ROWS = "SELECT message_id, state FROM channel_inbox ORDER BY seq"


async def started(
    daemons: Daemons, host: BlueskySimulator, ada: str, home: Path | None = None
) -> RunningDaemon:
    config = (
        f'[channels.bluesky]\nagent = "helper"\nallow_from = ["{ada}"]\n'
        f'allowed_hosts = ["127.0.0.1"]\nservice = "{host.url}"\n'
        'identifier = "helper.test"\npoll_seconds = 0.05\n'
    )
    environ = {"BLUESKY_APP_PASSWORD": PASSWORD}
    running = await daemons.start(config=config, environ=environ, home=home)
    if not len(running.daemon.agents):
        await running.agent("helper")
    await opened(running, "bluesky")
    return running


@pytest.mark.conformance
async def test_posts_and_letters_are_answered_once_across_breaks(
    daemons: Daemons,
) -> None:
    async with BlueskySimulator() as host:
        us, ada, eve = (host.join(f"{name}.test") for name in ("helper", "ada", "eve"))

        def posts() -> list[str]:
            mine = [p for p in host.posts.values() if p["author"]["did"] == us]
            return [str(each["record"]["text"]) for each in mine]

        def letters() -> list[str]:
            said = host.chat.messages[host.chat.convo([ada, us])]
            return [str(each["text"]) for each in said if each["sender"]["did"] == us]

        first = await started(daemons, host, ada)
        first.model.says("hello **Ada**")
        host.write(ada, us, "hi")
        await host.until(letters)
        assert letters() == ["hello Ada"]
        host.write(eve, us, "let me in")
        host.mention(eve, us, "let me in")
        first.model.says("it is an id")
        asked = host.mention(ada, us, "what is a TID?")
        await host.until(posts)
        assert posts() == ["it is an id"]
        (answer,) = [p for p in host.posts.values() if p["author"]["did"] == us]
        assert answer["record"]["reply"]["parent"]["uri"] == asked
        await first.daemon.stop()
        host.write(ada, us, "while you were away")
        again = await started(daemons, host, ada, first.daemon.home)
        # It may answer before anybody could tell it what to say.
        await host.until(lambda: len(letters()) == 2)
        assert letters() == ["hello Ada", "You said: while you were away"]
        kept = await again.daemon.store.read(ROWS)
        assert len(kept) == len({row[0] for row in kept}) == 3
        assert len(first.model.requests) + len(again.model.requests) == 3
        await again.daemon.stop()
