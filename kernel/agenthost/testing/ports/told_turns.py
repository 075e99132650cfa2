"""What an engine tells of its turns, as tests that its contract inherits."""

from __future__ import annotations

import pytest

from ...context import OPERATOR, Context
from ...errors import NotFound
from ...events import MessageEvent
from ...turns.events import Done, Thinking, TurnEvent
from ...turns.turn import Turn, Watcher, user_message
from ..daemons import RunningAgent
from ..recorded import Recorded
from ..scripted import Pause
from .stage import (
    Stage,
    StagedContract,
    a_while,
    begin,
    heard,
    known,
    soon,
)

HALF, REST = "one half, ", "and the rest"
TURN = "7d3c5c36-44f1-4dd2-9a6f-0fdfd7a1e3a1"


async def paused(stage: Stage, text: str = "hello") -> tuple[Pause, Turn]:
    """Give a turn of an agent ``ada`` whose answer stands after its first half."""
    daemon, pause = stage.running, stage.pause()
    agent = await daemon.agent("ada")
    daemon.model.says(HALF, pause, REST)
    turn = begin(agent, text)
    await soon(pause.reached.wait())
    return pause, turn


class ToldTurnsContract(StagedContract):
    """Who watches, comes late, listens or records is told all of a turn."""

    async def test_a_watcher_hears_all_from_the_first_event_on(
        self, stage: Stage
    ) -> None:
        """Thinking comes first, the words in order, and the result last."""
        daemon = await stage.open()
        agent = await daemon.agent()
        daemon.model.says(HALF, REST)
        watcher = daemon.daemon.turns.watch(
            Context(OPERATOR), known(agent), user_message("hello")
        )
        events = await soon(told(watcher))
        assert isinstance(events[0], Thinking)
        assert "".join(getattr(each, "text", "") for each in events) == HALF + REST
        last = events[-1]
        assert isinstance(last, Done)
        assert last.result.text == HALF + REST

    async def test_who_comes_late_hears_what_was_said(self, stage: Stage) -> None:
        """Behind what they have heard: while it runs, at its end, in a next daemon."""
        daemon = await stage.open()
        pause, turn = await paused(stage)
        agent = daemon.known_agent("ada")
        running = await late(agent, turn)
        pause.go_on()
        await soon(turn.result())
        ended = await late(agent, turn)
        daemon = await stage.open()
        later = await late(daemon.known_agent("ada"), turn)
        for watchers in (running, ended, later):
            said = [await heard(watcher) for watcher in watchers]
            assert said == [HALF + REST, REST]

    async def test_a_turn_is_shown_to_its_own_agent_alone(self, stage: Stage) -> None:
        """Neither attached to nor resumed by another, nor when there is none."""
        daemon = await stage.open()
        pause, turn = await paused(stage)
        ada, bob = daemon.known_agent("ada"), await daemon.agent("bob")
        turns, context = daemon.daemon.turns, Context(OPERATOR)
        for over in (False, True):
            for agent, turn_id in ((bob, turn.id), (ada, TURN)):
                with pytest.raises(NotFound):
                    await turns.attach(known(agent), turn_id)
                with pytest.raises(NotFound):
                    await turns.resume(context, known(agent), turn_id)
            if not over:
                pause.go_on()
                await soon(turn.result())

    async def test_a_listener_hears_of_turns_that_begin_to_run(
        self, stage: Stage
    ) -> None:
        """Each once, when its turn comes, until it listens no more."""
        daemon = await stage.open()
        begun: list[Turn] = []
        leave = daemon.daemon.turns.listen(begun.append)
        pause, first = await paused(stage)
        agent = daemon.known_agent("ada")
        second = begin(agent, "next")
        await a_while(daemon)
        assert begun == [first]
        pause.go_on()
        await soon(second.result())
        leave()
        await soon(begin(agent, "after").result())
        assert begun == [first, second]

    async def test_what_becomes_of_a_turn_is_recorded_and_told(
        self, stage: Stage
    ) -> None:
        """Of which agent, caused by whom, and how many events led there."""
        daemon = await stage.open()
        agent = await daemon.agent("ada")
        book = Recorded(daemon.daemon.events, MessageEvent)
        start, context = daemon.daemon.turns.start, Context(OPERATOR, depth=2)
        turn = start(context, known(agent), user_message("hi"))
        await soon(turn.result())
        assert book.told == book.kept
        assert [event.kind for event in book.kept] == [
            "message_received",
            "turn_started",
            "turn_ended",
        ]
        for event in book.kept:
            assert isinstance(event, MessageEvent)
            told = (event.subject, event.agent, event.turn_id, event.by, event.depth)
            assert told == (agent.id, "ada", turn.id, context.owner, 2)


async def told(watcher: Watcher) -> list[TurnEvent]:
    """Collect what a watcher is told, until the turn ends."""
    return [event async for event in watcher.events()]


async def late(agent: RunningAgent, turn: Turn) -> list[Watcher]:
    """Attach to a turn twice: with nothing heard, and with its first half."""
    turns, agent_now = agent.host.daemon.turns, known(agent)
    return [await soon(turns.attach(agent_now, turn.id, n)) for n in (0, len(HALF))]
