"""The adapter keeps the contract with a real relay, and the vendor's own library."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from agenthost_channels.contract import Fate, Outbound
from agenthost_channels.nostr.adapter import Nostr, Settings
from agenthost_channels.testing import ChannelContract, FakeLine, played
from agenthost_channels.testing.stages.nostr import RelayStage, relaying, staged
from agenthost_channels.testing.stages.nostr_person import sdk

pytestmark = pytest.mark.conformance


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def relay(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    async with relaying(tmp_path_factory.mktemp("nostr")) as port:
        yield port


@pytest.fixture
async def stage(relay: int) -> AsyncIterator[RelayStage]:
    async with staged(relay) as stage:
        yield stage


class TestNostrWithARelay(ChannelContract):
    """All of it."""


async def test_a_letter_of_old_is_heard_and_answered_so(stage: RelayStage) -> None:
    class Old(RelayStage):
        def settings(self) -> Settings:
            return super().settings().model_copy(update={"nip04": True})

    old = Old(stage._cable, stage.us, stage.ada)
    async with played(old) as play:
        await old.ada.publish(old.ada.of_old("as of old"))
        (heard,) = await play.line.hear(1)
        sent = await play.adapter.send(Outbound("k", heard.place, "in kind"))
        assert await old.seen(1) == ["in kind"]
    assert heard.text == "as of old"
    assert (sent.fate, heard.sender.id) == (Fate.DELIVERED, stage.person)
    assert old.ada.got[-1][2]["kind"] == 4


async def test_a_person_finds_where_to_write(stage: RelayStage) -> None:
    async with played(stage) as play:
        url = play.line.settings.relays[0]
        wanted = {"kinds": [10050], "authors": [stage.us.public_key().to_hex()]}
        found = await stage.ada.asked(wanted)
    assert ["relay", url] in found[0]["tags"]


async def test_a_relay_that_wants_to_know_us_lets_us_in() -> None:
    """The relay of the vendor's library asks both readers and writers (NIP-42)."""
    auth = sdk.LocalRelayBuilderNip42(mode=sdk.LocalRelayBuilderNip42Mode.BOTH)
    served = sdk.LocalRelayBuilder().addr("127.0.0.1").nip42(auth).build()
    await served.run()
    us, ada = sdk.Keys.generate(), sdk.Keys.generate()
    line_settings = Settings(relays=[str(await served.url())])
    try:
        line = FakeLine(line_settings, {"private_key": us.secret_key().to_hex()})
        play = asyncio.create_task((adapter := Nostr(line)).run())
        await line.until(lambda: bool(line.connections))
        event = sdk.nip17_make_private_msg(ada, us.public_key(), "hello", None, [])
        served.notify_event(event)
        (heard,) = await line.hear(1)
        sent = await adapter.send(Outbound("k", heard.place, "who knocks?"))
        play.cancel()
        await asyncio.wait([play])
        await line.aclose()
    finally:
        served.shutdown()
    assert heard.sender.id == ada.public_key().to_bech32()
    assert sent.fate is Fate.DELIVERED, sent.reason
