"""Where a turn speaks: in its agent's sessions alone, or in one of its own."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from agenthost import (
    OPERATOR,
    Agent,
    AgentHostError,
    Conflict,
    Context,
    Message,
    Mismatch,
    NotFound,
    Role,
    Text,
    TurnOptions,
    TurnState,
    user_message,
)
from agenthost.testing import Daemons, Pause, RunningDaemon

HISTORY = (
    Message(Role.USER, (Text("the word is blue"),)),
    Message(Role.ASSISTANT, (Text("noted"),)),
)


def known(daemon: RunningDaemon, agent_id: str) -> Agent:
    return daemon.daemon.agents.get(agent_id)


async def say(
    daemon: RunningDaemon, agent_id: str, text: str, options: TurnOptions
) -> str:
    turn = daemon.daemon.turns.start(
        Context(OPERATOR), known(daemon, agent_id), user_message(text), options
    )
    return (await turn.result()).text


def rows(daemon: RunningDaemon, query: str, *values: str) -> list[tuple[Any, ...]]:
    path = daemon.daemon.data_dir / "agenthost.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(query, values).fetchall()


async def test_a_session_of_another_agent_is_not_there(daemon: RunningDaemon) -> None:
    a, b = await daemon.agent("a"), await daemon.agent("b")
    await b.ask("my secret is 42")
    theirs = known(daemon, b.id).session_id
    options = TurnOptions(session_id=theirs)
    # Once while the conversation is known in memory, once when it has to be read.
    for _ in range(2):
        with pytest.raises(NotFound, match=f"session not found: {theirs}"):
            await say(daemon, a.id, "what is it?", options)
        daemon.daemon.sessions.forget(theirs)
    assert len(daemon.model.requests) == 1
    assert (await b.session())["message_count"] == 2


async def test_a_turn_of_another_agents_session_is_not_gone_on_with(
    daemon: RunningDaemon,
) -> None:
    a, b = await daemon.agent("a"), await daemon.agent("b")
    options = TurnOptions(turn_id=str(uuid4()))
    assert await say(daemon, b.id, "mine", options) == "You said: mine"
    with pytest.raises(NotFound):
        await daemon.daemon.turns.resume(
            Context(OPERATOR), known(daemon, a.id), str(options.turn_id)
        )


async def test_an_unknown_session_is_not_there(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    with pytest.raises(NotFound, match="session not found: nowhere"):
        await say(daemon, agent.id, "hello", TurnOptions(session_id="nowhere"))


async def test_an_archived_session_takes_no_messages(daemon: RunningDaemon) -> None:
    agent, sessions = await daemon.agent(), daemon.daemon.sessions
    beside = await sessions.open(agent.id)
    options = TurnOptions(session_id=beside.id)
    await say(daemon, agent.id, "one", options)
    await sessions.archive(beside.id)
    with pytest.raises(Conflict, match="take it out"):
        await say(daemon, agent.id, "two", options)
    await sessions.archive(beside.id, on=False)
    await say(daemon, agent.id, "three", options)
    said = [m.text for m in daemon.model.requests[-1].messages]
    assert said == ["one", "You said: one", "three"]


async def test_a_turn_that_waits_when_its_session_is_archived_is_refused(
    daemon: RunningDaemon,
) -> None:
    agent, sessions, pause = await daemon.agent(), daemon.daemon.sessions, Pause()
    daemon.model.says("one", pause)
    beside = await sessions.open(agent.id)
    options = TurnOptions(session_id=beside.id)
    first = asyncio.create_task(say(daemon, agent.id, "first", options))
    second = asyncio.create_task(say(daemon, agent.id, "second", options))
    await pause.reached.wait()
    await sessions.archive(beside.id)
    pause.go_on()
    assert await first == "one"
    with pytest.raises(Conflict, match="archived"):
        await second


async def test_a_turn_with_a_history_leaves_nothing(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    await agent.ask("mine")
    options = TurnOptions(history=HISTORY)
    assert await say(daemon, agent.id, "which?", options) == "You said: which?"
    heard = [m.text for m in daemon.model.requests[-1].messages]
    assert heard == ["the word is blue", "noted", "which?"]
    await agent.ask("again")
    heard = [m.text for m in daemon.model.requests[-1].messages]
    assert heard == ["mine", "You said: mine", "again"]
    assert rows(daemon, "select count(*) from sessions") == [(1,)]
    assert rows(daemon, "select count(*) from messages") == [(4,)]
    assert rows(daemon, "select count(*) from turns") == [(2,)]
    assert rows(daemon, "select count(*) from usage") == [(3,)]


async def test_turns_with_histories_do_not_wait_for_the_agents_session(
    daemon: RunningDaemon,
) -> None:
    agent, pause = await daemon.agent(), Pause()
    daemon.model.says("slow", pause)
    waiting = asyncio.create_task(agent.ask("own"))
    await pause.reached.wait()
    options = TurnOptions(history=HISTORY)
    assert await say(daemon, agent.id, "quick", options) == "You said: quick"
    pause.go_on()
    assert await waiting == "slow"


@pytest.mark.parametrize("effect", [False, True])
async def test_a_failed_or_stopped_turn_with_a_history_leaves_nothing(
    daemon: RunningDaemon,
    effect: bool,
) -> None:
    agent, pause = await daemon.agent(), Pause()
    if effect:
        daemon.model.calls("kv_set", key="a", value="1")
    daemon.model.says("one", pause)
    turns = daemon.daemon.turns
    watcher = turns.watch(
        Context(OPERATOR),
        known(daemon, agent.id),
        user_message("?"),
        TurnOptions(history=HISTORY),
    )
    await pause.reached.wait()
    # What an effect is journaled in is on disk; else it is of use to nobody.
    own = [(1,)] if effect else []
    assert rows(daemon, "select ephemeral from sessions order by 1") == [(0,), *own]
    assert len(rows(daemon, "select * from tool_calls")) == effect
    assert await turns.stop_all(agent.id, "enough") == 1
    with pytest.raises(AgentHostError):
        await watcher.turn.result()
    assert rows(daemon, "select ephemeral from sessions") == [(0,)]
    assert rows(daemon, "select count(*) from messages") == [(0,)]
    assert rows(daemon, "select count(*) from turns") == [(0,)]
    assert rows(daemon, "select count(*) from tool_calls") == [(0,)]


async def test_a_turn_with_a_history_and_an_id_is_asked_once(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    options = TurnOptions(str(uuid4()), digest="d", history=HISTORY)
    first = await say(daemon, agent.id, "which?", options)
    assert await say(daemon, agent.id, "which?", options) == first
    assert len(daemon.model.requests) == 1
    other = TurnOptions(options.turn_id, digest="e", history=HISTORY)
    with pytest.raises(Mismatch):
        await say(daemon, agent.id, "which?", other)
    assert len(await daemon.daemon.sessions.list()) == 1


async def test_a_cut_off_turn_goes_on_with_the_history_it_came_with(
    daemons: Daemons,
) -> None:
    first = await daemons.start()
    agent = await first.agent()
    pause = Pause()
    first.model.says("half", pause)
    options = TurnOptions(str(uuid4()), digest="d", history=HISTORY)
    turn = first.daemon.turns.start(
        Context(OPERATOR), known(first, agent.id), user_message("which?"), options
    )
    await pause.reached.wait()
    turn.cancel("the daemon ends", TurnState.INTERRUPTED)
    with pytest.raises(AgentHostError):
        await turn.result()
    assert turn.task is not None
    await asyncio.wait([turn.task])
    bare = await first.daemon.turns.resume(
        Context(OPERATOR), known(first, agent.id), turn.id
    )
    with pytest.raises(Conflict, match="brought its own history"):
        await bare.turn.result()
    assert await say(first, agent.id, "which?", options) == "You said: which?"
    heard = [m.text for m in first.model.requests[-1].messages]
    assert heard == ["the word is blue", "noted", "which?"]


async def test_an_agent_is_called_in_its_own_session(daemon: RunningDaemon) -> None:
    b = await daemon.agent("b")
    a = await daemon.agent("a")
    daemon.model.calls("agent_call", agent_id="b", message="hello")
    daemon.model.says("from b")
    daemon.model.says("done")
    await a.ask("ask b")
    assert [m["content"] for m in (await b.session())["messages"]] == [
        "hello",
        "from b",
    ]
