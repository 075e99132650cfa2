"""What turns and memories do is recorded in the commit that makes it so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenthost import (
    OPERATOR,
    AgentSpawned,
    Context,
    Event,
    Keep,
    MemoryChanged,
    MessageReceived,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    Unavailable,
    user_message,
)
from agenthost.testing import Daemons, RunningDaemon
from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

TABLE = "CREATE TABLE IF NOT EXISTS book (id TEXT, kind TEXT, message INTEGER)"
LINE = (
    "INSERT INTO book SELECT :id, :kind, "
    "(SELECT count(*) FROM messages WHERE role = 'user')"
)
KINDS = (
    AgentSpawned,
    MessageReceived,
    TurnStarted,
    ToolCalled,
    ToolEnded,
    MemoryChanged,
    TurnEnded,
)


class Book:
    """A recorder with a table of its own, closed to the kinds it refuses."""

    def __init__(self, running: RunningDaemon) -> None:
        self.refuses: type[Event] | None = None
        self.told: list[Event] = []
        self._running = running
        events = running.daemon.events
        events.record(self._record, *KINDS)
        events.subscribe(self.told.append, *KINDS)

    def _record(self, event: Event) -> Keep | None:
        if self.refuses is not None and isinstance(event, self.refuses):
            raise Unavailable("the book is closed")

        def line(connection: Connection) -> None:
            connection.execute(text(TABLE))
            connection.execute(text(LINE), {"id": event.id, "kind": event.kind})

        return line

    async def lines(self) -> list[tuple[str, str]]:
        rows = await self._running.daemon.store.read(
            "SELECT * FROM book ORDER BY rowid"
        )
        return [(row["kind"], row["id"]) for row in rows]


async def test_all_that_is_told_of_a_turn_is_in_the_book_by_the_same_id(
    daemons: Daemons,
) -> None:
    running = await daemons.start()
    book = Book(running)
    agent = await running.agent("ada")
    running.model.calls("kv_set", key="colour", value="blue")
    await agent.ask("remember blue")
    assert await book.lines() == [(each.kind, each.id) for each in book.told]
    assert [each.kind for each in book.told] == [
        "agent_spawned",
        "message_received",
        "turn_started",
        "tool_called",
        "memory_changed",
        "tool_ended",
        "turn_ended",
    ]
    by = {each.kind: (each.by, each.source) for each in book.told}
    assert by["agent_spawned"] == by["message_received"] == ("loopback:loopback", "")
    assert by["memory_changed"] == by["turn_ended"] == ("loopback:loopback", agent.id)


async def test_a_message_that_may_not_be_recorded_is_not_taken(
    daemons: Daemons,
) -> None:
    running = await daemons.start()
    book = Book(running)
    agent = await running.agent("ada")
    book.refuses = MessageReceived
    running.model.says("never told")
    refused = await agent.send("hello")
    assert (refused.status_code, refused.json()["error"]) == (503, "the book is closed")
    session = await running.http.get(f"/api/agents/{agent.id}/session")
    assert session.json()["messages"] == []
    assert [each.kind for each in book.told] == ["agent_spawned"]
    book.refuses = None
    running.model.says("told")
    assert await agent.ask("hello") == "told"


async def test_a_turn_whose_end_may_not_be_recorded_fails_and_ends(
    daemons: Daemons,
) -> None:
    running = await daemons.start()
    book = Book(running)
    agent = await running.agent("ada")
    book.refuses = TurnEnded
    running.model.says("lost")
    assert (await agent.send("hello")).status_code == 503
    rows = await running.daemon.store.read("SELECT state FROM turns")
    assert {row["state"] for row in rows} <= {"failed"}
    book.refuses = None
    running.model.says("told")
    assert await agent.ask("again") == "told"


async def test_a_value_that_may_not_be_recorded_stays_as_it_was(
    daemons: Daemons,
) -> None:
    running = await daemons.start()
    book = Book(running)
    agent = await running.agent("ada")
    path = f"/api/memory/agents/{agent.id}/kv/colour"
    await running.http.put(path, json={"value": "blue"})
    book.refuses = MemoryChanged
    assert (await running.http.put(path, json={"value": "red"})).status_code == 503
    assert (await running.http.delete(path)).status_code == 503
    assert (await running.http.get(path)).json()["value"] == "blue"


async def test_events_of_a_turn_say_how_many_led_to_it(daemons: Daemons) -> None:
    running = await daemons.start()
    book = Book(running)
    agent = await running.agent("ada")
    running.model.calls("kv_set", key="colour", value="blue")
    known = running.daemon.agents.get(agent.id)
    context = Context(OPERATOR, depth=3)
    turn = running.daemon.turns.start(context, known, user_message("hello"))
    await turn.result()
    assert {each.kind: each.depth for each in book.told} == {
        "agent_spawned": 0,
        **{kind.kind: 3 for kind in KINDS if kind is not AgentSpawned},
    }


async def test_a_message_of_an_agent_names_it_as_the_source(daemons: Daemons) -> None:
    running = await daemons.start()
    book = Book(running)
    await running.agent("bob")
    ada = await running.agent("ada")
    running.model.calls("agent_call", agent_id="bob", message="are you there?")
    running.model.says("yes")
    await ada.ask("ask bob")
    received = [each for each in book.told if isinstance(each, MessageReceived)]
    assert [(each.agent, each.by, each.source) for each in received] == [
        ("ada", "loopback:loopback", ""),
        ("bob", "agent:ada", ada.id),
    ]
