"""Who is answered, and what is done after a try to send."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from agenthost.testing import Daemons
from agenthost_channels.bridge.hearing import admitted, key_of
from agenthost_channels.bridge.saying import ATTEMPTS, settled
from agenthost_channels.bridge.settings import ChannelSection
from agenthost_channels.contract import Room

from .pager import BUSY, CONFIG, LOST, THERE, Pager, said

ROW = {"attempts": 0}


@pytest.mark.setting("channels.<name>.group_policy")
@pytest.mark.parametrize(
    ("policy", "spoken_to", "heard"),
    [
        ("ignore", True, False),
        ("mention_only", True, True),
        ("mention_only", False, False),
        ("all", False, True),
    ],
)
def test_a_group_is_answered_as_its_policy_says(
    policy: Literal["ignore", "mention_only", "all"], spoken_to: bool, heard: bool
) -> None:
    section = ChannelSection(agent="a", allow_from=["ada"], group_policy=policy)
    message = said("hi", peer="g", room=Room.GROUP, mentions_us=spoken_to)
    assert admitted(section, message) is heard
    stranger = said("hi", sender="eve", peer="g", room=Room.GROUP, mentions_us=True)
    assert not admitted(section, stranger)


def test_strangers_programs_and_changed_messages_are_not_answered() -> None:
    section = ChannelSection(agent="a", allow_from=["ada"])
    message = said("hi")
    program = replace(message, sender=replace(message.sender, bot=True))
    assert admitted(section, message)
    assert not admitted(ChannelSection(agent="a"), message)
    assert not admitted(section, program)
    assert not admitted(section, replace(message, edited=True))


def test_messages_of_one_id_in_two_conversations_are_two() -> None:
    keys = {key_of("c", said("x", peer=peer)) for peer in ("a", "b")}
    keys |= {key_of("d", said("x", peer="a"))}
    assert len(keys) == 3


def test_what_certainly_did_not_arrive_is_tried_again_when_the_vendor_says() -> None:
    slow = replace(BUSY, retry_after=90.0)
    after = settled(slow, ROW, 100.0, repeatable=False)
    assert (after["state"], after["due"], after["attempts"]) == ("waiting", 190.0, 1)


def test_what_would_be_refused_again_is_not_tried_again() -> None:
    refused = replace(BUSY, final=True)
    assert settled(refused, ROW, 0.0, repeatable=True)["state"] == "failed"


def test_what_was_tried_often_is_given_up() -> None:
    row = {"attempts": ATTEMPTS - 1}
    assert settled(BUSY, row, 0.0, repeatable=False)["state"] == "failed"
    assert settled(LOST, row, 0.0, repeatable=True)["state"] == "unknown"


def test_an_unknown_fate_is_repeated_only_where_the_vendor_knows_the_key() -> None:
    assert settled(LOST, ROW, 0.0, repeatable=False)["state"] == "unknown"
    assert settled(LOST, ROW, 0.0, repeatable=True)["state"] == "waiting"


def test_what_arrived_keeps_the_id_of_the_vendor() -> None:
    assert settled(THERE, ROW, 0.0, repeatable=False)["message_id"] == "v1"


async def test_keys_of_a_channels_own_are_no_unknown_keys(daemons: Daemons) -> None:
    """Misspelt ones among them are the channel's to find."""
    text = CONFIG + "number = 2\n[budget]\nmax_dayly_usd = 1\n"
    running = await daemons.start(config=text, plugins=[Pager()])
    (warning,) = (w for w in running.daemon.warnings if "unknown key" in w)
    assert "max_dayly_usd" in warning
