"""What somebody told in private does not come up where others hear the answer."""

from __future__ import annotations

from agenthost import Entry, Json, Message, Role, Text, ToolOutput
from agenthost.testing import Daemons, RunningDaemon
from agenthost_channels.bridge.withholding import NOTICE, notice_of
from agenthost_channels.contract import Inbound, Room
from agenthost_channels.rendering import rendered
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .pager import CONFIG, Pager, said
from .test_bridge import changed, quiet, rows

SECRET = "4711"
OPEN = CONFIG.replace('["ada"]', '["ada", "bob"]') + 'group_policy = "all"\n'


def shown(markdown: str) -> str:
    return rendered(markdown, "plain", 4000, "characters")[0].text


def in_group(
    text: str, number: int, sender: str = "ada", peer: str = "team"
) -> Inbound:
    return said(text, number, sender, peer, room=Room.GROUP)


async def read(
    running: RunningDaemon, pager: Pager, message: Inbound, *calls: tuple[str, str]
) -> str:
    """Have a message answered by these calls; give all that the model has read."""
    before = len(running.model.requests)
    for tool, what in calls:
        given = {"key": what} if tool == "kv_get" else {"query": what}
        running.model.calls(tool, **given)
    await pager.lines[-1].received(message)
    await quiet(running)
    asked = running.model.requests[before:]
    assert len(asked) == len(calls) + 1
    return "\n".join(repr(each.messages) for each in asked)


async def started(daemons: Daemons, pager: Pager) -> RunningDaemon:
    running = await daemons.start(config=OPEN, plugins=[pager])
    await running.agent("helper", ("memory_search", "kv_get", "kv_set"))
    await pager.line()
    return running


async def told(daemons: Daemons, pager: Pager) -> RunningDaemon:
    """Start a daemon whose agent was told something in private."""
    running = await started(daemons, pager)
    running.model.calls("kv_set", key="pin", value=f"the number {SECRET}")
    await pager.lines[-1].received(said(f"my number is {SECRET}", 1))
    await quiet(running)
    return running


ASKED = (("memory_search", "number"), ("kv_get", "pin"))


async def test_what_is_private_does_not_come_up_in_a_group(daemons: Daemons) -> None:
    pager = Pager()
    running = await told(daemons, pager)
    heard = await read(running, pager, in_group("which?", 2), *ASKED)
    assert SECRET not in heard
    assert "is left out" in heard
    assert "was told in private" in heard
    # Nor does it when somebody asks again, or somebody else does, or anybody hears.
    public = said("which?", 5, peer="square", room=Room.PUBLIC, mentions_us=True)
    for message in (in_group("again?", 3), in_group("and?", 4, "bob"), public):
        assert SECRET not in await read(running, pager, message, *ASKED)
    direct = await read(running, pager, said("which?", 6), *ASKED)
    assert direct.count(SECRET) > 2
    assert "is left out" not in direct


async def test_a_group_is_not_quoted_in_another_but_in_private(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    words = ("memory_search", "launch")
    await read(running, pager, in_group("the launch is on Monday", 1))
    same = await read(running, pager, in_group("when?", 2), words)
    assert "is left out" not in same
    elsewhere = in_group("when?", 3, peer="others")
    assert "monday" not in await read(running, pager, elsewhere, words)
    assert "monday" in await read(running, pager, said("when?", 4), words)
    # Who has read what a group said still hears what is private.
    running.model.calls("kv_set", key="own", value="mine alone")
    await pager.lines[-1].received(said("keep it", 5))
    await quiet(running)
    heard = await read(running, pager, said("?", 6), ("kv_get", "own"))
    assert "told in private" not in heard


async def test_what_was_said_in_public_may_come_up_everywhere(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    public = said(
        "the launch is on Monday", 1, peer="square", room=Room.PUBLIC, mentions_us=True
    )
    await read(running, pager, public)
    words = ("memory_search", "launch")
    assert "monday" in await read(running, pager, in_group("when?", 2), words)


async def test_what_was_said_before_there_were_labels_stays_where_it_was(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await started(daemons, pager)
    await read(running, pager, said("the launch is on Monday", 1))
    await changed(running, "UPDATE messages SET labels = '[\"untrusted\"]'")
    assert (await rows(running, "SELECT DISTINCT labels FROM messages")) == [
        ('["untrusted"]',)
    ]
    words = ("memory_search", "launch")
    assert "monday" not in await read(running, pager, in_group("when?", 2), words)


def heard_by(pager: Pager, peer: str) -> list[str]:
    return [each.text for each in pager.sent if each.place.peer == peer]


async def test_a_room_is_told_that_something_is_kept_back(daemons: Daemons) -> None:
    pager = Pager()
    running = await told(daemons, pager)
    await read(running, pager, in_group("which?", 2), ("kv_get", "pin"))
    await read(running, pager, in_group("which?", 3), ("memory_search", "number"))
    await read(running, pager, in_group("which?", 4), ("memory_search", "nothing"))
    first, second, third = heard_by(pager, "team")
    assert first.endswith("\n\n" + shown(NOTICE))
    assert second.endswith("\n\n" + shown(NOTICE))
    assert shown(NOTICE) not in third
    await read(running, pager, said("which?", 5), *ASKED)
    assert not [each for each in heard_by(pager, "ada") if shown(NOTICE) in each]


async def test_it_is_told_also_where_the_answer_is_written_again(
    daemons: Daemons,
) -> None:
    pager = Pager()
    running = await told(daemons, pager)
    await read(running, pager, in_group("which?", 2), ("kv_get", "pin"))
    back = "UPDATE channel_inbox SET state = 'new', text = 'which?' WHERE peer = 'team'"
    await changed(running, back, "DELETE FROM channel_outbox WHERE peer = 'team'")
    await running.daemon.stop()
    again = await daemons.start(config=OPEN, plugins=[pager], home=running.daemon.home)
    await quiet(again)
    first, second = heard_by(pager, "team")
    assert first == second
    assert again.model.requests == []


def test_what_no_tool_has_kept_back_is_no_notice() -> None:
    others: list[Json] = [None, [], "withheld", {}, {"withheld": "x"}]
    outputs = tuple(ToolOutput("1", "kv_get", "x", structured=s) for s in others)
    spoken = [Message(Role.USER, (Text("withheld"),)), Message(Role.TOOL, outputs)]
    entries = [Entry(each, n, n, "t", 0.0) for n, each in enumerate(spoken)]
    assert notice_of(entries) == ""


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.sampled_from(["direct", "group", "others", "bob"]), min_size=2, max_size=5
    )
)
async def test_in_any_order_nothing_private_reaches_a_group(
    daemons: Daemons, order: list[str]
) -> None:
    pager = Pager()
    running = await told(daemons, pager)
    for number, where in enumerate(order, 2):
        if where == "direct":
            assert SECRET in await read(running, pager, said("?", number), *ASKED)
            continue
        sender = "bob" if where == "bob" else "ada"
        peer = "others" if where == "others" else "team"
        message = in_group("?", number, sender, peer)
        assert SECRET not in await read(running, pager, message, *ASKED)
    await running.daemon.stop()
