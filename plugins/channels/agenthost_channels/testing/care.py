"""What an adapter promises about connections, secrets and whoever is hostile."""

from __future__ import annotations

import asyncio
import logging

import pytest
from agenthost import Unauthenticated

from ..contract import Room
from .stage import Stage, needs, played


class CareContract:
    """An adapter survives its vendor, keeps its secrets, and leaves nothing behind."""

    async def test_it_tells_that_it_is_connected(self, stage: Stage) -> None:
        """Once, when messages come in and go out."""
        async with played(stage) as play:
            assert play.line.connections == 1

    async def test_a_broken_connection_ends_it(self, stage: Stage) -> None:
        """It comes back when it is run again, and hears what comes then."""
        needs(stage, "cut")
        async with played(stage) as play:
            await stage.cut()
            await play.ended()
            await play.restart()
            await stage.say("welcome back")
            (message,) = await play.line.hear(1)
        assert message.text == "welcome back"

    async def test_wrong_secrets_are_told_and_not_shown(
        self, stage: Stage, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The operator learns that they are refused, and nobody what they were."""
        needs(stage, "wrong_secrets")
        caplog.set_level(logging.DEBUG)
        async with played(stage, connected=False) as play:
            secrets = dict(stage.wrong_secrets())
            play.line.change_secrets(secrets)
            play.start()
            error = await play.ended()
        assert isinstance(error, Unauthenticated)
        assert str(error)
        for secret in secrets.values():
            assert secret not in f"{error!r} {error}"
            assert secret not in caplog.text

    async def test_a_missing_secret_is_named(self, stage: Stage) -> None:
        """By the name under which the operator sets it."""
        for name in sorted(stage.channel.needed):
            async with played(stage, connected=False) as play:
                left = {key: v for key, v in stage.secrets().items() if key != name}
                play.line.change_secrets(left)
                play.start()
                error = await play.ended()
            assert isinstance(error, Unauthenticated)
            assert name in str(error)

    async def test_needed_secrets_are_secrets(self, stage: Stage) -> None:
        """What is needed is declared, with a variable of the environment."""
        assert stage.channel.needed <= set(stage.channel.secrets)
        assert all(name.isupper() for name in stage.channel.secrets.values())

    async def test_secrets_are_in_no_log_and_no_repr(
        self, stage: Stage, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Whatever the level of the log is."""
        caplog.set_level(logging.DEBUG)
        async with played(stage) as play:
            await stage.say("hello")
            await play.line.hear(1)
            await play.adapter.send(play.message("hello"))
            shown = f"{play.adapter!r} {play.line.settings!r} {play.line.heard!r}"
        for secret in stage.secrets().values():
            assert secret not in shown
            assert secret not in caplog.text

    async def test_hostile_bytes_end_nothing(self, stage: Stage) -> None:
        """They are passed over: the next message is heard."""
        needs(stage, "hostile")
        async with played(stage) as play:
            await stage.hostile()
            await stage.say("after the storm")
            await play.line.until(
                lambda: any(each.text == "after the storm" for each in play.line.heard)
            )

    async def test_it_stops_when_told_and_leaves_nothing(self, stage: Stage) -> None:
        """No task, no connection: it can be started a hundred times."""
        before = asyncio.all_tasks()
        async with played(stage) as play:
            await stage.say("hello")
            await play.line.hear(1)
            mine = asyncio.all_tasks() - before
            await play.stop()
            # What a library closes, it closes in the next rounds of the loop.
            for _ in range(20):
                await asyncio.sleep(0)
            assert not {task for task in mine if self._of_adapter(task, play)}
            assert play.line.left_open() == 0

    @staticmethod
    def _of_adapter(task: asyncio.Task[object], play: object) -> bool:
        module = type(getattr(play, "adapter", None)).__module__
        code = getattr(task.get_coro(), "cr_code", None)
        package = (module.rpartition(".")[0] or module).replace(".", "/")
        return not task.done() and code is not None and package in code.co_filename

    async def test_it_stops_while_the_disk_is_slow(self, stage: Stage) -> None:
        """A message that waits for the disk holds nobody up."""
        async with played(stage) as play:
            play.line.hold()
            await stage.say("hello")
            await play.line.until(lambda: bool(play.line.batches))
            await play.stop()

    async def test_it_says_who_we_are(self, stage: Stage) -> None:
        """What a test of the settings shows."""
        async with played(stage) as play:
            assert await play.adapter.identity()

    async def test_the_facts_agree_with_themselves(self, stage: Stage) -> None:
        """A limit, a unit, and an id that is the package's."""
        facts = stage.facts
        assert facts.limit > 0
        assert set(facts.limits) <= {room.value for room in Room}
        assert all(each > facts.limit for each in facts.limits.values())
        assert facts.unit in {"characters", "utf16", "graphemes", "bytes"}
        assert facts.docs.startswith("https://")
        assert (facts.files > 0) == (facts.file_bytes > 0)

    async def test_rooms_are_not_mixed(self, stage: Stage) -> None:
        """An answer goes to the place it is for."""
        if not stage.groups:
            pytest.skip(f"{stage.facts.display_name} has no groups")
        async with played(stage) as play:
            await play.adapter.send(play.message("for one"))
            await play.adapter.send(play.message("for all", Room.GROUP))
            assert await stage.seen(1, Room.GROUP) == ["for all"]
            assert await stage.seen(1) == ["for one"]
