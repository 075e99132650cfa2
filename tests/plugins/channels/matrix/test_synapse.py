"""The adapter keeps the contract with a real homeserver."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from agenthost_channels.contract import Room
from agenthost_channels.testing import ChannelContract, played
from agenthost_channels.testing.stages.matrix import SynapseStage, homeserver, staged
from agenthost_channels.testing.stages.matrix_person import User, registered

pytestmark = pytest.mark.conformance


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    async with homeserver(tmp_path_factory.mktemp("synapse")) as port:
        yield port


@pytest.fixture
async def stage(
    server: int, request: pytest.FixtureRequest
) -> AsyncIterator[SynapseStage]:
    async with staged(server, abs(hash(request.node.name))) as stage:
        yield stage


class TestMatrixWithSynapse(ChannelContract):
    """All of it."""


async def test_an_invitation_of_somebody_allowed_is_taken(
    stage: SynapseStage, server: int
) -> None:
    us, ada = stage.us, stage.ada
    eve = User(server, *registered(server, "eve-who-invites"))
    async with played(stage) as play:
        for host in (eve, ada):
            body = {"invite": [us.id], "preset": "trusted_private_chat"}
            made = await host.call("POST", "/_matrix/client/v3/createRoom", json=body)
            stage.rooms[Room.DIRECT] = made["room_id"]
            await host.send(made["room_id"], {"msgtype": "m.text", "body": "too early"})

        def joined(events: list[Any]) -> bool:
            return any(each["content"].get("membership") == "join" for each in events)

        await ada.until(stage.rooms[Room.DIRECT], joined, us.id)
        await stage.say("welcome")
        (message,) = await play.line.hear(1)
    rooms = await us.call("GET", "/_matrix/client/v3/joined_rooms")
    await eve.aclose()
    assert message.text == "welcome"
    assert len(rooms["joined_rooms"]) == 3


async def test_an_edit_by_somebody_else_changes_nothing(stage: SynapseStage) -> None:
    us, ada = stage.us, stage.ada
    room = stage.rooms[Room.GROUP]
    async with played(stage) as play:
        ours = await us.send(room, {"msgtype": "m.text", "body": "ours"})
        relation = {"rel_type": "m.replace", "event_id": ours}
        new = {"msgtype": "m.text", "body": "forged"}
        await ada.send(room, {**new, "m.new_content": new, "m.relates_to": relation})
        await stage.say("honest", Room.GROUP)
        heard = await play.line.hear(1)
    assert [each.text for each in heard] == ["honest"]
