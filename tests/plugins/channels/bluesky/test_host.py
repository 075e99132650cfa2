"""The adapter keeps the contract with a real host of accounts.

Posts and files lie on the host, which hands on to a simulator what it hands on to
Bluesky: who is notified, and direct messages.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from agenthost.testing.simulators.bluesky import BlueskySimulator
from agenthost.testing.simulators.bluesky.shared import stamp
from agenthost_channels.bluesky.adapter import Settings
from agenthost_channels.bluesky.mapping import POSTS
from agenthost_channels.contract import Fate, Outbound, OutFile, Place, Room
from agenthost_channels.testing import ChannelContract, Stage, played
from agenthost_channels.testing.servers import Cable
from agenthost_channels.testing.stages.bluesky import BlueskyStage

from .pds import Host, Person, real_host

pytestmark = pytest.mark.conformance

FACET = "app.bsky.richtext.facet"
PICTURE = OutFile("chart.png", "image/png", b"\x89PNG\r\n\x1a\n" + bytes(99))


class HostStage(BlueskyStage):
    """A host with Ada, Bob and us; the posts are on it."""

    judge = "@atproto/pds with a simulated AppView and chat service"

    # The host hands on no headers that say until when.
    limit = Stage.limit

    def __init__(self, behind: BlueskySimulator, host: Host, cable: Cable) -> None:
        self.host = behind
        self._host = host
        self._cable = cable
        self._lost = False

    async def open(self) -> None:
        """Make the accounts, and the thread."""
        people = [await self._host.join(name) for name in ("helper", "ada", "bob")]
        self.account, self._ada, self._bob = people
        self.us, self.person, self.bob = (each.did for each in people)
        for each, name in zip(people, ("helper", "ada", "bob"), strict=True):
            self.host.join(f"{name}.test", each.did)
        self._password = await self.account.app_password(privileged=True)
        self.root = await self.posted(self.account, "ask me anything")
        self._below = await self.posted(self._bob, "I will", self.root)

    async def posted(self, who: Person, text: str, reply: str = "", **more: Any) -> str:
        """Let somebody post on the host, which the AppView learns of."""
        kind, at = "app.bsky.feed.post", stamp()
        record: dict[str, Any] = {"$type": kind, "text": text, "createdAt": at, **more}
        if reply:
            parent = self.host.posts[reply]
            above = {"uri": reply, "cid": parent["cid"]}
            root = parent["record"].get("reply", {}).get("root", above)
            record["reply"] = {"root": root, "parent": above}
        made = await who.post(record)
        key = made["uri"].rpartition("/")[2]
        self.host.index(who.did, key, record, made["cid"])
        return str(made["uri"])

    def settings(self) -> Settings:
        return Settings(
            service=f"http://127.0.0.1:{self._cable.port}",
            identifier="helper.test",
            directory=self._host.directory,
            poll_seconds=0.05,
        )

    def secrets(self) -> Mapping[str, str]:
        return {"app_password": self._password}

    async def say(self, text: str, room: Room = Room.DIRECT) -> None:
        if room is Room.DIRECT:
            await super().say(text)
            return
        more = {}
        if text.startswith("@helper.test"):
            feature = {"$type": f"{FACET}#mention", "did": self.us}
            index = {"byteStart": 0, "byteEnd": len("@helper.test")}
            more["facets"] = [{"index": index, "features": [feature]}]
        await self.posted(self._ada, text, self._below, **more)

    async def say_in_thread(self, text: str) -> None:
        await self.posted(self._ada, f"@helper.test {text}", self.root)

    async def answer(self, text: str) -> None:
        uri = (await self.ours(1))[-1]["uri"]
        await self.posted(self._ada, text, uri)

    async def ours(self, count: int) -> list[Any]:
        """Wait until we have posted so much, and let the AppView learn of it."""
        for _ in range(400):
            if len(found := (await self.account.posts())[1:]) >= count:
                break
            await asyncio.sleep(0.05)
        assert len(found) >= count
        for each in found:
            if each["uri"] not in self.host.posts:
                key = each["uri"].rpartition("/")[2]
                self.host.index(self.us, key, each["value"], each["cid"])
        return found

    async def seen(self, count: int, room: Room = Room.DIRECT) -> list[str]:
        if room is Room.DIRECT:
            return await super().seen(count)
        return [each["value"]["text"] for each in await self.ours(count)]

    async def threads_seen(self) -> str:
        said = (await self.ours(1))[-1]["value"]
        return str(said["reply"]["root"]["uri"])

    async def attached(self, file: OutFile) -> None:
        """Let Ada post a picture, which lies on the host."""
        image = {"alt": "", "image": await self._ada.upload(file.media_type, file.data)}
        embed = {"$type": "app.bsky.embed.images", "images": [image]}
        await self.posted(self._ada, "look", self.root, embed=embed)

    async def cut(self) -> None:
        self._cable.pull()
        self.host.breaking = 1


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    async with real_host(tmp_path_factory.mktemp("host")) as running:
        yield running


@pytest.fixture
async def stage(host: Host) -> AsyncIterator[HostStage]:
    async with (
        BlueskySimulator(host.behind) as behind,
        Cable(int(host.url.rpartition(":")[2])) as cable,
    ):
        stage = HostStage(behind, host, cable)
        try:
            await stage.open()
            yield stage
        finally:
            await host.leave()


class TestHost(ChannelContract):
    """Bluesky keeps every promise of a channel, on a real host."""

    @pytest.fixture
    async def stage(self, stage: HostStage) -> Stage:
        return stage


async def test_a_post_is_one_however_often_it_is_sent(stage: HostStage) -> None:
    place = stage.place(Room.GROUP)
    message = Outbound("key-1", place, "only once: https://example.com/é, see")
    async with played(stage) as play:
        assert (await play.adapter.reconcile(message)).fate is Fate.NOT_SENT
        sent = await play.adapter.send(message)
        assert sent.fate is Fate.DELIVERED, sent.reason
        again = await play.adapter.send(message)
        assert again.fate is Fate.UNKNOWN
        assert await play.adapter.reconcile(message) == sent
    (post,) = await stage.ours(1)
    assert re.fullmatch("[2-7a-z]{13}", post["uri"].rpartition("/")[2])
    (facet,) = post["value"]["facets"]
    assert facet["features"][0]["uri"] == "https://example.com/é"


async def test_pictures_go_both_ways(stage: HostStage) -> None:
    async with played(stage) as play:
        place = Place("default", POSTS, room=Room.PUBLIC)
        message = Outbound("key-1", place, "look", files=(PICTURE,))
        sent = await play.adapter.send(message)
        assert sent.fate is Fate.DELIVERED, sent.reason
        await stage.attached(PICTURE)
        (heard,) = await play.line.hear(1)
        (file,) = heard.attachments
        assert await play.adapter.download(file) == PICTURE.data


async def test_too_much_is_refused_by_the_host_too(stage: HostStage) -> None:
    async with played(stage) as play:
        long = Outbound("key-1", stage.place(Room.GROUP), "x" * 301)
        sent = await play.adapter.send(long)
    assert (sent.fate, sent.final) == (Fate.NOT_SENT, True)
    assert "300" in sent.reason


async def test_an_app_password_without_direct_messages_is_told(
    stage: HostStage,
) -> None:
    weak = await stage.account.app_password(privileged=False)
    async with played(stage, connected=False) as play:
        play.line.change_secrets({"app_password": weak})
        play.start()
        error = await play.ended()
    assert "messages = false" in str(error)
