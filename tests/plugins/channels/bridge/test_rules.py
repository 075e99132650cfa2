"""Who is answered, and what is done after a try to send."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agenthost.testing import Daemons
from agenthost_channels.bridge.admission import Verdict, judged
from agenthost_channels.bridge.answering import Said
from agenthost_channels.bridge.binding import bound, choosable
from agenthost_channels.bridge.hearing import key_of, row_of, says_of
from agenthost_channels.bridge.saying import ATTEMPTS, settled
from agenthost_channels.bridge.settings import ChannelSection
from agenthost_channels.contract import Facts, Room
from agenthost_channels.facts import facts

from .pager import BUSY, CONFIG, LOST, THERE, Pager, said

ROW = {"attempts": 0}
LIMITS = {"direct": 300, "group": 200}
LONG = Facts("pager", "Pager", "test", "", limit=100, limits=LIMITS)


@pytest.mark.setting("channels.<name>.group_policy")
@pytest.mark.parametrize(
    ("policy", "text", "spoken_to", "heard"),
    [
        ("ignore", "hi", True, False),
        ("mention_only", "hi", True, True),
        ("mention_only", "/new", False, False),
        ("commands_only", "hi", True, False),
        ("commands_only", "/new", False, True),
        ("all", "hi", False, True),
    ],
)
def test_a_group_is_answered_as_its_policy_says(
    policy: Any, text: str, spoken_to: bool, heard: bool
) -> None:
    section = ChannelSection(agent="a", group_policy=policy, dm_policy="pairing")
    message = said(text, peer="g", room=Room.GROUP, mentions_us=spoken_to)
    verdict = Verdict.ANSWER if heard else Verdict.IGNORE
    assert judged(section, message, known=True) is verdict
    # A stranger is told nothing before others, least of all a code.
    assert judged(section, message, known=False) is Verdict.IGNORE


@pytest.mark.setting("channels.<name>.dm_policy")
@pytest.mark.parametrize(
    ("policy", "known", "verdict"),
    [
        ("allow_list", True, Verdict.ANSWER),
        ("allow_list", False, Verdict.IGNORE),
        ("pairing", True, Verdict.ANSWER),
        ("pairing", False, Verdict.ASK_FOR_CODE),
        ("ignore", True, Verdict.IGNORE),
        ("ignore", False, Verdict.IGNORE),
    ],
)
def test_a_direct_message_is_answered_as_its_policy_says(
    policy: Any, known: bool, verdict: Verdict
) -> None:
    section = ChannelSection(agent="a", dm_policy=policy)
    message = said("hi")
    assert judged(section, message, known=known) is verdict
    program = replace(message, sender=replace(message.sender, bot=True))
    for other in (program, replace(message, edited=True)):
        assert judged(section, other, known=known) is Verdict.IGNORE


@pytest.mark.setting(
    "channels.<name>.bindings[].account",
    "channels.<name>.bindings[].peer",
    "channels.<name>.bindings[].thread",
)
def test_the_binding_that_says_most_counts() -> None:
    told = [
        {"agent": "anywhere", "peer": "*"},
        {"agent": "rooms", "peer": "#*"},
        {"agent": "dev", "peer": "#dev[1]"},
        {"agent": "thread", "thread": "t1"},
        {"agent": "second", "also": ["third"], "account": "work", "peer": "#dev[1]"},
    ]
    section = ChannelSection.model_validate(
        {"agent": "default", "bindings": told, "agents": ["spare"]}
    )
    places = {
        ("default", "ada", ""): ("anywhere",),
        ("default", "#chat", ""): ("rooms",),
        ("default", "#dev[1]", ""): ("dev",),
        ("default", "#dev1", ""): ("rooms",),
        ("work", "#dev[1]", ""): ("second", "third"),
        ("work", "#dev[1]", "t1"): ("thread",),
    }
    for place, names in places.items():
        assert bound(section, place) == names
    assert bound(ChannelSection(agent="default"), ("default", "x", "")) == ("default",)
    here = ("work", "#dev[1]", "")
    assert choosable(section, here) == ("second", "third", "spare")


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


@pytest.mark.parametrize(
    ("room", "messages"), [(Room.DIRECT, 2), (Room.GROUP, 3), (Room.PUBLIC, 6)]
)
def test_an_answer_is_cut_as_its_room_takes_it(room: Room, messages: int) -> None:
    row = row_of("pager", said("hi", room=room), 0.0)
    words = [Said(f"{'x' * 99} " * 6)]
    assert len(says_of(row, LONG, words, 0.0)) == messages
    # Of what is said first nobody knows where it goes.
    assert len(says_of({**row, "message_id": ""}, LONG, words, 0.0)) == 6


def test_a_direct_message_of_bluesky_is_longer_than_a_post() -> None:
    bluesky = facts("bluesky")
    limits = [bluesky.limit_in(room) for room in Room]
    assert limits == [1000, 1000, 300]
