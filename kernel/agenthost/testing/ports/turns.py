"""What every backend of the port TURNS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from agenthost_chat.chat import ModelSettings

from ...agent import AgentState
from ...context import OPERATOR, Context
from ...errors import (
    Cancelled,
    Conflict,
    Interrupted,
    Mismatch,
    NotFound,
    ProviderFault,
    Unavailable,
)
from ...ports.records import TurnResult, TurnState
from ...turns.turn import user_message
from ..daemons import RunningDaemon
from ..scripted import Pause
from .stage import (
    Stage,
    a_while,
    begin,
    ending,
    entries_of,
    known,
    record_of,
    resumed,
    soon,
    texts_of,
)
from .told_turns import HALF, REST, TURN, ToldTurnsContract, paused
from .turns_tools import CallersTools

AT_ONCE = 5


def asked(daemon: RunningDaemon) -> Sequence[str]:
    """Give the last message of each request that the model has had."""
    return [request.messages[-1].text for request in daemon.model.requests]


class TurnsContract(ToldTurnsContract, CallersTools):
    """An engine keeps every promise of the port.

    A subclass overrides the fixture ``backend``. The tests run in daemons that it
    serves, with a scripted model.

    Example:
        ::

            class TestMailboxes(TurnsContract):
                @pytest.fixture
                def backend(self) -> TurnsBackend:
                    return TurnsBackend("mailboxes", open_engine)
    """

    async def test_turns_of_a_session_run_one_after_another(self, stage: Stage) -> None:
        """Each answers its own question, in the order in which they came."""
        daemon = await stage.open()
        pause, first = await paused(stage, "0")
        agent = daemon.known_agent("ada")
        rest = [begin(agent, str(number)) for number in range(1, AT_ONCE)]
        await a_while(daemon)
        assert asked(daemon) == ["0"]
        assert daemon.daemon.turns.running == AT_ONCE
        pause.go_on()
        results = [await ending(turn) for turn in (first, *rest)]
        said = [getattr(each, "text", each) for each in results]
        answers = [HALF + REST, *(f"You said: {n}" for n in range(1, AT_ONCE))]
        assert said == answers
        pairs = [each for n in range(AT_ONCE) for each in (str(n), answers[n])]
        assert await texts_of(agent) == pairs

    async def test_turns_of_two_sessions_run_at_once(self, stage: Stage) -> None:
        """Neither waits for the other."""
        daemon = await stage.open()
        pause, first = await paused(stage)
        bob = await daemon.agent("bob")
        other = await soon(begin(bob, "hi").result())
        pause.go_on()
        assert other.text == "You said: hi"
        assert (await soon(first.result())).text == HALF + REST

    async def test_an_answer_is_on_disk_when_it_is_given(self, stage: Stage) -> None:
        """With what it has taken; so is the question."""
        daemon = await stage.open()
        agent = await daemon.agent()
        turn = begin(agent, "hello")
        result = await soon(turn.result())
        record = await record_of(agent, turn)
        assert (record.state, record.agent_id) == (TurnState.DONE, agent.id)
        assert record.result.text == result.text == "You said: hello"
        assert record.result.usage == result.usage
        assert (result.iterations, result.model) == (1, "scripted/scripted-model")
        assert await texts_of(agent) == ["hello", "You said: hello"]

    async def test_a_stop_is_on_disk_when_it_answers(self, stage: Stage) -> None:
        """The words so far are kept; what waits goes on."""
        daemon = await stage.open()
        _, turn = await paused(stage)
        agent = daemon.known_agent("ada")
        waits = begin(agent, "next")
        assert await soon(daemon.daemon.turns.stop(known(agent), "a test")) == 1
        record = await record_of(agent, turn)
        assert (record.state, record.result.text) == (TurnState.CANCELLED, HALF)
        assert isinstance(await ending(turn), Cancelled)
        assert (await soon(waits.result())).text == "You said: next"
        assert await texts_of(agent) == ["hello", HALF, "next", "You said: next"]

    async def test_a_stop_ends_only_what_is_meant(self, stage: Stage) -> None:
        """An agent stops nothing in a session that is another's."""
        daemon = await stage.open()
        pause, turn = await paused(stage)
        bob, session = await daemon.agent("bob"), turn.agent.session_id
        assert await daemon.daemon.turns.stop(known(bob), "no") == 0
        assert await daemon.daemon.turns.stop(known(bob), "no", session) == 0
        pause.go_on()
        assert (await soon(turn.result())).text == HALF + REST

    async def test_stopping_all_ends_what_runs_and_what_waits(
        self, stage: Stage
    ) -> None:
        """Of that agent alone."""
        daemon = await stage.open()
        _, turn = await paused(stage)
        ada, bob, pause = (
            daemon.known_agent("ada"),
            await daemon.agent("bob"),
            stage.pause(),
        )
        waits = begin(ada, "next")
        daemon.model.says(pause, "bob's")
        other = begin(bob, "hi")
        await soon(pause.reached.wait())
        assert await soon(daemon.daemon.turns.stop_all(ada.id, "a test")) == 2
        ends = [await ending(each) for each in (turn, waits)]
        assert all(isinstance(end, Cancelled) for end in ends)
        assert (await record_of(ada, turn)).state is TurnState.CANCELLED
        pause.go_on()
        assert (await soon(other.result())).text == "bob's"

    async def test_a_failure_ends_its_own_turn_alone(self, stage: Stage) -> None:
        """It is told as it was, its row says so, and the next turn is answered."""
        daemon = await stage.open()
        agent = await daemon.agent()
        daemon.model.fails(ProviderFault.BILLING)
        turn, behind = begin(agent, "hello"), begin(agent, "next")
        assert getattr(await ending(turn), "code", "") == "billing"
        assert (await soon(behind.result())).text == "You said: next"
        assert (await record_of(agent, turn)).state is TurnState.FAILED

    async def test_an_id_asked_again_is_the_same_turn(self, stage: Stage) -> None:
        """While it runs, once it has ended, and in the next daemon."""
        daemon = await stage.open()
        agent, pause = await daemon.agent(), stage.pause()
        daemon.model.says(pause, "once")
        first = begin(agent, "hello", turn_id=TURN, digest="a")
        await soon(pause.reached.wait())
        second = begin(agent, "hello", turn_id=TURN, digest="a")
        pause.go_on()
        results = [await soon(each.result()) for each in (first, second)]
        third = begin(agent, "hello", turn_id=TURN, digest="a")
        results.append(await soon(third.result()))
        daemon = await stage.open()
        later = begin(daemon.known_agent(agent.name), "hello", turn_id=TURN, digest="a")
        results.append(await soon(later.result()))
        assert [each.text for each in results] == ["once"] * 4
        assert await texts_of(daemon.known_agent(agent.name)) == ["hello", "once"]

    async def test_an_id_given_for_something_else_is_refused(
        self, stage: Stage
    ) -> None:
        """Mismatch, while its turn runs and after; that turn goes on as it was."""
        daemon = await stage.open()
        agent, pause = await daemon.agent(), stage.pause()
        daemon.model.says(pause, "once")
        turn = begin(agent, "hello", turn_id=TURN, digest="a")
        await soon(pause.reached.wait())
        with pytest.raises(Mismatch):
            begin(agent, "hi", turn_id=TURN, digest="b")
        pause.go_on()
        assert (await soon(turn.result())).text == "once"
        with pytest.raises(Mismatch):
            await soon(begin(agent, "hi", turn_id=TURN, digest="b").result())
        assert await texts_of(agent) == ["hello", "once"]

    async def test_a_call_of_another_agent_gives_its_answer(self, stage: Stage) -> None:
        """By name or id; NotFound when there is none."""
        daemon = await stage.open()
        pause, turn = await paused(stage)
        bob, turns = await daemon.agent("bob"), daemon.daemon.turns
        for name in (bob.name, bob.id):
            result = await soon(turns.call_agent(turn.context, name, "hi"))
            assert result.text == "You said: hi"
        with pytest.raises(NotFound):
            await soon(turns.call_agent(turn.context, "nobody", "hi"))
        pause.go_on()
        await soon(turn.result())

    async def test_a_call_that_closes_a_ring_is_refused(self, stage: Stage) -> None:
        """At once, when it would wait for itself; so is one that goes ever deeper."""
        daemon = await stage.open()
        pause, turn = await paused(stage)
        agent, message = daemon.known_agent("ada"), user_message("again")
        with pytest.raises(Conflict):
            daemon.daemon.turns.start(turn.context, known(agent), message)
        deep = replace(turn.context, chain=tuple(map(str, range(1_000))))
        bob = await daemon.agent("bob")
        with pytest.raises(Conflict):
            daemon.daemon.turns.start(deep, known(bob), message)
        pause.go_on()
        assert (await soon(turn.result())).text == HALF + REST

    async def test_an_agent_that_takes_no_messages_starts_nothing(
        self, stage: Stage
    ) -> None:
        """Conflict, and the model is not asked."""
        daemon = await stage.open()
        agent = known(await daemon.agent())
        for state in (AgentState.SUSPENDED, AgentState.TERMINATED):
            with pytest.raises(Conflict):
                daemon.daemon.turns.start(
                    Context(OPERATOR), replace(agent, state=state), user_message("hi")
                )
        assert asked(daemon) == []

    async def test_a_stateless_turn_leaves_the_session_alone(
        self, stage: Stage
    ) -> None:
        """Its history is all that the model sees."""
        daemon = await stage.open()
        agent = await daemon.agent()
        await soon(begin(agent, "kept").result())
        history = (user_message("made up"),)
        result = await soon(begin(agent, "apart", history=history).result())
        assert result.text == "You said: apart"
        seen = [message.text for message in daemon.model.requests[-1].messages]
        assert "kept" not in " ".join(seen)
        assert "made up" in " ".join(seen)
        assert await texts_of(agent) == ["kept", "You said: kept"]

    async def test_a_turn_may_speak_in_another_session_of_its_agent(
        self, stage: Stage
    ) -> None:
        """Which it does not share with the agent's own."""
        daemon = await stage.open()
        agent, sessions = await daemon.agent(), daemon.daemon.sessions
        session = await sessions.open(agent.id, "contract:peer")
        await soon(begin(agent, "hello", session_id=session.id).result())
        spoken = await sessions.entries(await sessions.get(session.id))
        assert [each.message.text for each in spoken] == ["hello", "You said: hello"]
        assert await entries_of(agent) == []

    async def test_resets_at_once_change_the_session_once(self, stage: Stage) -> None:
        """What runs is stopped, and all tell of the same new one, which is empty."""
        daemon = await stage.open()
        _, turn = await paused(stage)
        agent = daemon.known_agent("ada")
        before, turns = known(agent), daemon.daemon.turns
        fresh = await soon(
            asyncio.gather(*(turns.reset(before) for _ in range(AT_ONCE)))
        )
        assert isinstance(await ending(turn), Cancelled)
        assert {each.session_id for each in fresh} == {known(agent).session_id}
        assert known(agent).session_id != before.session_id
        assert await entries_of(agent) == []
        assert (await soon(begin(agent, "new").result())).text == "You said: new"

    async def test_a_reset_may_keep_the_session_and_go_back_to_it(
        self, stage: Stage
    ) -> None:
        """It is archived until then; one that is not the agent's is NotFound."""
        daemon = await stage.open()
        agent, turns = await daemon.agent(), daemon.daemon.turns
        await soon(begin(agent, "kept").result())
        old = known(agent).session_id
        await soon(turns.reset(known(agent), keep=True))
        assert (await daemon.daemon.sessions.get(old)).archived_at is not None
        bob = await daemon.agent("bob")
        with pytest.raises(NotFound):
            await soon(turns.reset(known(bob), old))
        await soon(turns.reset(known(agent), old))
        assert await texts_of(agent) == ["kept", "You said: kept"]

    async def test_something_can_be_done_apart_in_another_session(
        self, stage: Stage
    ) -> None:
        """It is not held up by a turn of the agent's own, nor moved there."""
        daemon = await stage.open()
        pause, first = await paused(stage)
        agent = daemon.known_agent("ada")
        other = await daemon.daemon.sessions.open(agent.id, "elsewhere")

        async def told(session_id: str) -> str:
            return session_id

        turns = daemon.daemon.turns
        assert await soon(turns.apart(known(agent), told, other.id)) == other.id
        pause.go_on()
        await soon(first.result())

    async def test_what_is_done_apart_has_the_session_for_itself(
        self, stage: Stage
    ) -> None:
        """It waits for the turn before it, and the one behind waits for it."""
        daemon = await stage.open()
        pause, first = await paused(stage)
        agent, alone_there = daemon.known_agent("ada"), stage.pause()
        order: list[str] = []

        async def alone(session_id: str) -> str:
            order.append("apart")
            await alone_there.wait()
            return session_id

        turns = daemon.daemon.turns
        turns.listen(lambda _: order.append("turn"))
        apart = asyncio.create_task(turns.apart(known(agent), alone))
        await a_while(daemon)
        behind = begin(agent, "next")
        await a_while(daemon)
        assert order == []
        pause.go_on()
        await soon(first.result())
        await soon(alone_there.reached.wait())
        alone_there.go_on()
        assert await soon(apart) == known(agent).session_id
        await soon(behind.result())
        assert order == ["apart", "turn"]

    async def test_what_is_done_apart_can_be_stopped_unless_it_is_sealed(
        self, stage: Stage
    ) -> None:
        """Cancelled tells who asked for it."""
        daemon = await stage.open()
        agent, turns = await daemon.agent(), daemon.daemon.turns
        for sealed in (False, True):
            there = stage.pause()

            async def alone(_: str, there: Pause = there) -> str:
                await there.wait()
                return "done"

            work = asyncio.create_task(turns.apart(known(agent), alone, sealed=sealed))
            await soon(there.reached.wait())
            stopping = asyncio.create_task(turns.stop(known(agent), "a test"))
            if sealed:
                await a_while(daemon)
                there.go_on()
            assert await soon(stopping) == (0 if sealed else 1)
            (end,) = await soon(asyncio.gather(work, return_exceptions=True))
            assert end == "done" if sealed else isinstance(end, Cancelled)

    async def test_a_draining_engine_starts_nothing_new(self, stage: Stage) -> None:
        """Unavailable; what runs goes on to its end."""
        daemon = await stage.open()
        pause, turn = await paused(stage)
        agent = daemon.known_agent("ada")
        daemon.daemon.turns.refuse_new()
        with pytest.raises(Unavailable):
            begin(agent, "next")
        with pytest.raises(Unavailable):
            daemon.daemon.turns.watch(
                Context(OPERATOR), known(agent), user_message("next")
            )
        pause.go_on()
        assert (await soon(turn.result())).text == HALF + REST

    async def test_a_drain_waits_for_what_ends_in_time(self, stage: Stage) -> None:
        """It answers once the turn's last row is on disk."""
        daemon = await stage.open()
        pause, turn = await paused(stage)
        drain = asyncio.create_task(daemon.daemon.turns.drain(60))
        await a_while(daemon)
        assert not drain.done()
        pause.go_on()
        await soon(drain)
        record = await record_of(daemon.known_agent("ada"), turn)
        assert record.state is TurnState.DONE

    async def test_what_a_drain_interrupts_the_next_daemon_resumes(
        self, stage: Stage
    ) -> None:
        """In its own place: the question stands once, and has its answer."""
        daemon = await stage.open()
        _, turn = await paused(stage)
        await soon(daemon.daemon.turns.drain(0))
        agent = daemon.known_agent("ada")
        assert (await record_of(agent, turn)).state is TurnState.INTERRUPTED
        assert isinstance(await ending(turn), Interrupted)
        daemon = await stage.open()
        agent = daemon.known_agent("ada")
        await soon(begin(agent, "next").result())
        watcher = await resumed(agent, turn)
        assert (await soon(watcher.turn.result())).text == "You said: hello"
        texts = await texts_of(agent)
        assert texts == ["hello", "You said: hello", "next", "You said: next"]
        record = await record_of(agent, turn)
        assert (record.state, watcher.turn.id) == (TurnState.DONE, turn.id)

    async def test_what_is_asked_of_answers_is_kept_to(self, stage: Stage) -> None:
        """The model is asked, and only an answer of that form is given."""
        daemon, form = await stage.open(), {"required": ["city"]}
        for text in ("{}", '{"city": 1}'):
            daemon.model.says(text)
        settings = ModelSettings(response_format=form, seed=7)
        turn = begin(await daemon.agent(), "hello", settings=settings)
        assert (await soon(turn.result())).text == '{"city": 1}'
        first = daemon.model.requests[0]
        assert (first.response_format, first.seed) == (form, 7)

    async def test_a_turn_spends_no_more_than_it_may(self, stage: Stage) -> None:
        """Without a budget left the model is not asked."""
        daemon = await stage.open()
        agent = await daemon.agent()
        end = await ending(begin(agent, "hello", max_cost_micro_usd=0))
        assert not isinstance(end, TurnResult)
        assert getattr(end, "code", "") == "quota_exceeded"
        assert asked(daemon) == []
