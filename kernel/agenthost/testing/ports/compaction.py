"""What every backend of the port COMPACTION promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from agenthost_chat.chat import Message, ToolOutput, ToolUse

from ...errors import AgentHostError, Cancelled, ProviderFault
from ...plugins.guards import ALLOW
from ...ports.approvals import Ask, Question
from ...ports.compaction import Compaction, Condensed
from ...ports.sessions import Session
from ..daemons import RunningAgent, RunningDaemon
from ..scripted import USAGE
from .stage import (
    Stage,
    StagedContract,
    a_while,
    begin,
    ending,
    entries_of,
    known,
    soon,
    texts_of,
)
from .workshop import Workshop

EXCHANGES = 4
LONG = 2 * EXCHANGES
AT_ONCE = 3


@dataclass(frozen=True)
class Talk:
    """An agent that was spoken with, and the turns of it."""

    agent: RunningAgent
    turns: tuple[str, ...]

    @property
    def compaction(self) -> Compaction:
        """What is tried."""
        return self.agent.host.daemon.compaction

    async def session(self) -> Session:
        """Read the row of its session."""
        return await self.agent.host.daemon.sessions.of_agent(self.agent.id)

    async def condense(self) -> Condensed:
        """Have it condensed."""
        return await soon(self.compaction.of_agent(known(self.agent)))

    async def seen(self) -> list[Message]:
        """Read the conversation as a model sees it."""
        sessions = self.agent.host.daemon.sessions
        return (await sessions.history(await self.session())).messages

    async def kept(self, daemon: RunningDaemon) -> list[str]:
        """Read what was said in every turn, whether it was condensed or not."""
        session = (await self.session()).id
        said = [await daemon.daemon.journal.said(session, turn) for turn in self.turns]
        return [entry.message.text for entries in said for entry in entries]


async def talk(daemon: RunningDaemon, exchanges: int = EXCHANGES) -> Talk:
    """Speak with an agent."""
    agent = await daemon.agent()
    turns = [begin(agent, f"message {number}") for number in range(exchanges)]
    for turn in turns:
        await soon(turn.result())
    return Talk(agent, tuple(turn.id for turn in turns))


def spoken(exchanges: int = EXCHANGES) -> list[str]:
    """Give what is said in such a talk."""
    pairs = ((f"message {n}", f"You said: message {n}") for n in range(exchanges))
    return [text for pair in pairs for text in pair]


class CompactionContract(StagedContract):
    """A compaction keeps every promise of the port.

    A subclass overrides the fixture ``backend``, and ``config`` so that a session of
    more than six messages is condensed, and two to four of them stay.

    Example:
        ::

            class TestSummary(CompactionContract):
                @pytest.fixture
                def backend(self) -> CompactionBackend:
                    return CompactionBackend("summary", open_compaction)

                @pytest.fixture
                def config(self) -> str:
                    return EARLY  # threshold_messages = 6, keep_recent = 2
    """

    async def test_a_short_session_is_left_alone(self, stage: Stage) -> None:
        """Nobody is asked, and nothing changes."""
        daemon = await stage.open()
        said = await talk(daemon, 2)
        before = await said.session()
        assert await said.condense() == Condensed(summarised=0, kept=4)
        assert await said.session() == before
        assert len(daemon.model.requests) == 2

    async def test_a_long_session_is_condensed(self, stage: Stage) -> None:
        """The newest messages stay as they are, behind what stands for the rest."""
        daemon = await stage.open()
        said = await talk(daemon)
        done = await said.condense()
        assert 2 <= done.kept <= 4
        assert done.summarised == LONG - done.kept
        summary, *rest = await said.seen()
        assert summary == (await said.session()).summary
        assert [message.text for message in rest] == spoken()[done.summarised :]

    async def test_what_is_condensed_is_not_lost(self, stage: Stage) -> None:
        """Its turns have all their words, in the next daemon too."""
        daemon = await stage.open()
        said = await talk(daemon)
        await said.condense()
        assert await said.kept(daemon) == spoken()
        seen = await said.seen()
        daemon = await stage.open()
        again = Talk(daemon.known_agent(said.agent.name), said.turns)
        assert await again.kept(daemon) == spoken()
        assert await again.seen() == seen

    async def test_a_result_stays_with_its_call(self, stage: Stage) -> None:
        """What stays begins with a question."""
        shop = Workshop()
        daemon = await stage.open(*shop.plugins())
        agent = await daemon.agent(tools=["look"])
        for number in range(2):
            daemon.model.calls("look", amount=number)
            await soon(begin(agent, f"message {number}").result())
        said = Talk(agent, ())
        assert (await said.condense()).summarised > 0
        calls: set[str] = set()
        for message in await said.seen():
            calls |= {part.id for part in message.parts if isinstance(part, ToolUse)}
            results = {p.id for p in message.parts if isinstance(p, ToolOutput)}
            assert results <= calls
        assert (await texts_of(agent))[0].startswith("message")

    async def test_a_turn_that_waits_for_a_person_keeps_its_messages(
        self, stage: Stage
    ) -> None:
        """It goes on from them."""
        shop = Workshop()
        asked = Ask(Question("Shall it be paid?"))
        shop.calls = lambda case: asked if case.tool == "pay" else ALLOW
        daemon = await stage.open(*shop.plugins())
        agent = await daemon.agent(tools=["pay"])
        await soon(begin(agent, "before").result())
        daemon.model.calls("pay", amount=3)
        turn = begin(agent, "pay them")
        assert getattr(await ending(turn), "code", "") == "waiting"
        for number in range(EXCHANGES):
            await soon(begin(agent, f"message {number}").result())
        await Talk(agent, ()).condense()
        stays = [e.message for e in await entries_of(agent) if e.turn_id == turn.id]
        assert [message.text for message in stays][:1] == ["pay them"]
        assert any(message.tool_uses for message in stays)

    async def test_it_waits_for_the_turn_that_runs(self, stage: Stage) -> None:
        """Which it condenses with what was there before."""
        daemon = await stage.open()
        said = await talk(daemon, 3)
        pause = stage.pause()
        daemon.model.says(pause, "at last")
        turn = begin(said.agent, "one more")
        await soon(pause.reached.wait())
        work = asyncio.create_task(said.condense())
        await a_while(daemon)
        assert not work.done()
        pause.go_on()
        done, result = await work, await soon(turn.result())
        assert result.text == "at last"
        assert (await texts_of(said.agent))[-2:] == ["one more", "at last"]
        assert done.summarised == LONG - done.kept > 0

    async def test_one_that_is_stopped_changes_nothing(self, stage: Stage) -> None:
        """Cancelled tells so, as it does to a turn."""
        daemon = await stage.open()
        said = await talk(daemon, 3)
        pause = stage.pause()
        daemon.model.says(pause)
        begin(said.agent, "runs")
        await soon(pause.reached.wait())
        waits = begin(said.agent, "waits")
        work = asyncio.create_task(said.condense())
        await a_while(daemon)
        await soon(daemon.daemon.turns.stop_all(said.agent.id, "a test"))
        assert isinstance(await ending(waits), Cancelled)
        with pytest.raises(Cancelled):
            await work
        assert await said.kept(daemon) == spoken(3)
        assert (await said.session()).summary is None

    async def test_a_session_that_was_reset_is_not_condensed(
        self, stage: Stage
    ) -> None:
        """Nor is the new one, which has nothing of the old."""
        daemon = await stage.open()
        said = await talk(daemon, 3)
        pause = stage.pause()
        daemon.model.says(pause)
        begin(said.agent, "runs")
        await soon(pause.reached.wait())
        work = asyncio.create_task(said.condense())
        await a_while(daemon)
        await soon(daemon.daemon.turns.reset(known(said.agent)))
        with pytest.raises(Cancelled):
            await work
        assert await said.seen() == []

    async def test_some_at_once_condense_once(self, stage: Stage) -> None:
        """All of them end, and nothing is lost."""
        daemon = await stage.open()
        said = await talk(daemon)
        agent = known(said.agent)
        works = (said.compaction.of_agent(agent) for _ in range(AT_ONCE))
        first, *rest = await soon(asyncio.gather(*works))
        assert first.summarised == LONG - first.kept
        assert rest == [Condensed(summarised=0, kept=first.kept)] * (AT_ONCE - 1)
        assert await said.kept(daemon) == spoken()

    async def test_a_turn_finds_its_conversation_condensed(self, stage: Stage) -> None:
        """It is told to read the session anew, where there was something to do."""
        daemon = await stage.open()
        said = await talk(daemon, 3)
        target = daemon.daemon.agents.target_of(known(said.agent))
        sessions, context = daemon.daemon.sessions, said.agent.context()
        short = await sessions.history(await said.session())
        assert not await soon(said.compaction.before_turn(short, target, context))
        assert await said.seen() == short.messages
        for number in range(3, EXCHANGES + 1):
            await soon(begin(said.agent, f"message {number}").result())
        question = daemon.model.requests[-1].messages
        assert question[-1].text == f"message {EXCHANGES}"
        assert len(question) < LONG
        assert (await said.session()).summary is not None

    async def test_a_conversation_that_has_moved_on_is_left_alone(
        self, stage: Stage
    ) -> None:
        """What somebody else has condensed meanwhile is not condensed over."""
        daemon = await stage.open()
        said = await talk(daemon, 3)
        sessions, context = daemon.daemon.sessions, said.agent.context()
        target = daemon.daemon.agents.target_of(known(said.agent))
        await soon(begin(said.agent, "message 3").result())
        stale = await sessions.history(await said.session())
        assert (await said.condense()).summarised > 0
        before = await said.session()
        told = await soon(
            asyncio.gather(
                said.compaction.before_turn(stale, target, context),
                return_exceptions=True,
            )
        )
        assert told[0] is False or isinstance(told[0], AgentHostError)
        after = await said.session()
        assert (after.first_seq, after.summary) == (before.first_seq, before.summary)

    async def test_a_model_that_fails_takes_nothing_away(self, stage: Stage) -> None:
        """The session is condensed or as it was, and nothing between the two."""
        daemon = await stage.open()
        said = await talk(daemon)
        before = await said.session()
        daemon.model.fails(ProviderFault.BILLING)
        try:
            done = await said.condense()
        except AgentHostError:
            assert await said.session() == before
        else:
            assert done.kept == len(await entries_of(said.agent))
        assert await said.kept(daemon) == spoken()

    async def test_what_it_takes_is_booked(self, stage: Stage) -> None:
        """As what turns take."""
        daemon = await stage.open()
        said = await talk(daemon)
        await said.condense()
        total = await daemon.daemon.usage.of_agent(said.agent.id)
        asked = len(daemon.model.requests)
        assert total.input_tokens == asked * USAGE.input_tokens
        assert total.output_tokens == asked * USAGE.output_tokens
