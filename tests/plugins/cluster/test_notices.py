"""What one node tells is heard by the others."""

from __future__ import annotations

import asyncio

import pytest
from agenthost import Signals
from agenthost_cluster import notices
from agenthost_cluster.store import PostgresStore

from .conftest import OpenNode
from .server import Server
from .test_store import end_connections

pytestmark = pytest.mark.conformance

PATIENCE = 60.0


class Ear:
    """Hears a topic of a node."""

    def __init__(self, store: PostgresStore, topic: str = "topic") -> None:
        self._heard: asyncio.Queue[str] = asyncio.Queue()
        signals(store).listen(topic, self._heard.put_nowait)

    async def next(self) -> str:
        async with asyncio.timeout(PATIENCE):
            return await self._heard.get()

    @property
    def silent(self) -> bool:
        return self._heard.empty()


def signals(store: PostgresStore) -> Signals:
    assert store.signals is not None
    return store.signals


async def test_every_other_node_hears_what_one_tells(node: OpenNode) -> None:
    one, two, three = [await node([]) for _ in range(3)]
    mine, ears = Ear(one), [Ear(two), Ear(three)]
    for ear in (mine, *ears):
        assert await ear.next() == ""
    said = ["a b  c", "'; DROP TABLE x", "ключ", ""]
    for word in said:
        signals(one).tell("topic", word)
    for ear in ears:
        assert [await ear.next() for _ in said] == said
    signals(two).tell("topic", "back")
    assert await mine.next() == "back"
    assert mine.silent


async def test_words_are_heard_in_the_order_in_which_they_are_told(
    node: OpenNode,
) -> None:
    one, two = await node([]), await node([])
    ear = Ear(two)
    assert await ear.next() == ""
    said = [str(number) for number in range(200)]
    for word in said:
        signals(one).tell("topic", word)
        await asyncio.sleep(0)
    assert [await ear.next() for _ in said] == said


async def test_a_topic_is_heard_by_itself(node: OpenNode) -> None:
    one, two = await node([]), await node([])
    ear, other = Ear(two), Ear(two, "topic2")
    assert (await ear.next(), await other.next()) == ("", "")
    signals(one).tell("topic2", "x")
    assert await other.next() == "x"
    assert ear.silent


async def test_what_is_told_often_is_told_once_at_a_time(node: OpenNode) -> None:
    one, two = await node([]), await node([])
    ear = Ear(two)
    assert await ear.next() == ""
    for _ in range(1_000):
        signals(one).tell("topic", "x")
    signals(one).tell("topic", "end")
    assert [await ear.next(), await ear.next()] == ["x", "end"]


async def test_a_node_that_heard_nothing_for_a_while_is_told_so(
    server: Server, database: str, node: OpenNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "AGAIN", 0.0)
    one, two = await node([]), await node([])
    ear = Ear(two)
    assert await ear.next() == ""
    end_connections(server, database)
    assert await ear.next() == ""
    signals(one).tell("topic", "again")
    assert await ear.next() == "again"


async def test_a_node_that_closes_tells_its_last_words(node: OpenNode) -> None:
    one, two = await node([]), await node([])
    ear = Ear(two)
    assert await ear.next() == ""
    signals(one).tell("topic", "last")
    await one.close()
    assert await ear.next() == "last"
