"""What every backend of the port AGENTS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from ...agent import Agent, AgentMode, AgentState
from ...context import OPERATOR, Context, Grants, Principal, PrincipalKind
from ...errors import (
    AgentHostError,
    Cancelled,
    Conflict,
    Denied,
    InvalidInput,
    NotFound,
    Unavailable,
)
from ...events import (
    AgentResumed,
    AgentSpawned,
    AgentSuspended,
    AgentTerminated,
    AgentUpdated,
    LifecycleEvent,
)
from ...plugins.guards import ALLOW, Deny, Verdict
from ...plugins.points import Guard, SpawnCase
from ...ports.agents import Agents
from ...ports.sessions import SessionFilter
from ..clock import ManualClock
from ..daemons import RunningDaemon
from ..recorded import Recorded
from .stage import Stage, StagedContract, begin, ending, guarding, soon, texts_of, until

BY = Context(OPERATOR)
ADA = 'name = "ada"\n'
AT_ONCE = 8
WRONG = ("name = ", "description = 'no name'\n", "name = 5\n", ADA + "profile = 'x'\n")
POOR = Principal(PrincipalKind.AGENT, "poor", Grants({"agent_spawn": ("*",)}))


async def spawned(daemon: RunningDaemon, manifest: str = ADA) -> Agent:
    """Bring an agent into being for the operator."""
    agent, _ = await soon(daemon.daemon.agents.spawn(BY, manifest))
    return agent


def named(agents: Agents) -> list[str]:
    """Name the agents, oldest first."""
    return [agent.name for agent in agents.list()]


class Spawning:
    """A guard that refuses who comes into being, or changes, while it is told to."""

    def __init__(self) -> None:
        self.refuses = False
        self.cases: list[SpawnCase] = []
        self.plugin = guarding("doubt", Guard.SPAWN, self._guard)

    def _guard(self, case: SpawnCase) -> Verdict:
        self.cases.append(case)
        return Deny("not today") if self.refuses else ALLOW


class AgentsContract(StagedContract):
    """The agents' life cycle keeps every promise of the port.

    A subclass overrides the fixture ``backend``. The tests run in daemons that it
    serves, over the rows of the port RECORDS.

    Example:
        ::

            class TestKept(AgentsContract):
                @pytest.fixture
                def backend(self) -> AgentsBackend:
                    return AgentsBackend("kept", open_agents)
    """

    async def test_an_agent_is_there_with_its_session(self, stage: Stage) -> None:
        """Found by its id in any form and by its name; who is not there is NotFound."""
        daemon = await stage.open()
        agents, ada = daemon.daemon.agents, await spawned(daemon)
        assert (ada.name, ada.state) == ("ada", AgentState.RUNNING)
        assert agents.get(ada.id) == ada
        for reference in ("ada", ada.id, ada.id.upper(), UUID(ada.id).hex):
            assert agents.find(reference) == ada
        assert (await daemon.daemon.sessions.of_agent(ada.id)).id == ada.session_id
        for reference in ("Ada", "bob", ada.session_id):
            with pytest.raises(NotFound):
                agents.find(reference)
        with pytest.raises(NotFound):
            agents.get("ada")

    async def test_they_are_told_apart_from_the_first_on(self, stage: Stage) -> None:
        """Oldest first, and ``exist`` is set from the first."""
        daemon = await stage.open()
        agents = daemon.daemon.agents
        assert (len(agents), agents.exist.is_set()) == (0, False)
        for number, name in enumerate(("cyd", "ada", "bob"), 1):
            await spawned(daemon, f'name = "{name}"\n')
            assert (len(agents), agents.exist.is_set()) == (number, True)
        assert named(agents) == ["cyd", "ada", "bob"]
        agents.list().clear()
        assert len(agents.list()) == 3

    async def test_a_name_is_taken_once(self, stage: Stage) -> None:
        """Conflict, also at once; what was refused leaves nothing."""
        daemon = await stage.open()
        agents = daemon.daemon.agents
        spawning = (agents.spawn(BY, ADA) for _ in range(AT_ONCE))
        ends = await soon(asyncio.gather(*spawning, return_exceptions=True))
        assert sum(isinstance(end, Conflict) for end in ends) == AT_ONCE - 1
        with pytest.raises(Conflict):
            await spawned(daemon)
        assert named(agents) == ["ada"]
        assert len(await daemon.daemon.sessions.list()) == 1

    @pytest.mark.parametrize("manifest", WRONG)
    async def test_a_wrong_manifest_is_refused(
        self, stage: Stage, manifest: str
    ) -> None:
        """InvalidInput, and nobody is there."""
        daemon = await stage.open()
        with pytest.raises(InvalidInput):
            await spawned(daemon, manifest)
        with pytest.raises(InvalidInput, match="nobody"):
            await spawned(daemon, f'{ADA}[model]\nprovider = "nobody"\n')
        assert len(daemon.daemon.agents) == 0
        assert await daemon.daemon.sessions.list() == []

    async def test_what_has_no_effect_is_warned_of(self, stage: Stage) -> None:
        """A key that nobody knows, a tool that is not there; else there is no word."""
        daemon = await stage.open()
        spawn = daemon.daemon.agents.spawn
        _, none = await soon(spawn(BY, ADA))
        wrong = 'name = "bob"\ncolour = "red"\n[capabilities]\ntools = ["fly"]\n'
        _, some = await soon(spawn(BY, wrong))
        assert list(none) == []
        assert any("colour" in line for line in some)
        assert any("fly" in line for line in some)

    async def test_a_guard_may_refuse_who_comes_into_being(self, stage: Stage) -> None:
        """Denied; it is shown who asks, and all that the agent would be granted."""
        guard = Spawning()
        daemon = await stage.open(guard.plugin)
        guard.refuses = True
        with pytest.raises(Denied):
            await spawned(daemon, f'{ADA}[capabilities]\ntools = ["calc*"]\n')
        (case,) = guard.cases
        assert (case.principal, case.name) == (OPERATOR, "ada")
        assert case.grants["tool"] == ("calc*",)
        assert len(daemon.daemon.agents) == 0
        assert await daemon.daemon.sessions.list() == []

    async def test_nobody_gets_more_than_its_maker_has(self, stage: Stage) -> None:
        """Denied, whatever the manifest says."""
        daemon = await stage.open()
        spawn = daemon.daemon.agents.spawn
        with pytest.raises(Denied):
            await soon(spawn(Context(POOR), f'{ADA}[capabilities]\ntools = ["*"]\n'))
        agent, _ = await soon(spawn(Context(POOR), ADA))
        assert daemon.daemon.agents.list() == [agent]

    async def test_a_change_keeps_the_rest(self, stage: Stage) -> None:
        """It is there at once, and a guard may refuse it: then nothing changes."""
        guard = Spawning()
        daemon = await stage.open(guard.plugin)
        agents = daemon.daemon.agents
        ada = await spawned(daemon, f'{ADA}description = "old"\nversion = "7"\n')
        new = {"description": "new"}
        changed = await soon(agents.change(BY, ada, new))
        assert agents.get(ada.id) == agents.find("ada") == changed
        assert changed.manifest.description == "new"
        assert changed.manifest.model_copy(update={"description": "old"}) == (
            ada.manifest
        )
        guard.refuses = True
        with pytest.raises(Denied):
            await soon(agents.change(BY, changed, {"description": "newer"}))
        assert agents.get(ada.id) == changed

    async def test_changes_at_once_lose_nothing(self, stage: Stage) -> None:
        """Of the manifest, the mode and the session, on disk too."""
        daemon = await stage.open()
        agents, ada = daemon.daemon.agents, await spawned(daemon)
        await soon(
            asyncio.gather(
                agents.change(BY, ada, {"description": "new"}),
                agents.set_mode(BY, ada, AgentMode.STABLE),
                agents.new_session(ada, "", keep=False),
                agents.change(BY, ada, {"version": "7"}),
                agents.set_model(BY, ada, "scripted", "another"),
                agents.change(BY, ada, {"model": {"system_prompt": "short"}}),
            )
        )
        for _ in range(2):
            now = daemon.daemon.agents.get(ada.id)
            said = now.manifest
            assert (said.description, said.version) == ("new", "7")
            assert said.model.system_prompt == "short"
            assert said.model.model == "another"
            assert now.mode is AgentMode.STABLE
            own = await daemon.daemon.sessions.of_agent(ada.id)
            assert own.id == now.session_id != ada.session_id
            daemon = await stage.open()

    async def test_a_model_is_set_as_it_is_named(self, stage: Stage) -> None:
        """For the next turn on; a provider that is unknown changes nothing."""
        daemon = await stage.open()
        agents, ada = daemon.daemon.agents, await spawned(daemon)
        usual = "scripted", "scripted-model"
        assert agents.model_of(ada) == agents.target_of(ada).names == usual
        choice = await soon(agents.set_model(BY, ada, "scripted", "another"))
        now = agents.get(ada.id)
        assert agents.model_of(now) == choice.target.names == ("scripted", "another")
        assert agents.target_of(now).names == ("scripted", "another")
        with pytest.raises(InvalidInput):
            await soon(agents.set_model(BY, now, "nobody", "another"))
        assert agents.get(ada.id) == now

    async def test_a_stable_agent_stays_with_its_model(self, stage: Stage) -> None:
        """When the daemon's default is another, until it is let go."""
        daemon = await stage.open()
        await soon(
            daemon.daemon.agents.set_mode(BY, await spawned(daemon), AgentMode.STABLE)
        )
        await spawned(daemon, 'name = "bob"\n')
        other = {"AGENTHOST_DEFAULT_MODEL__MODEL": "another"}
        daemon = await stage.open(environ=other)
        agents = daemon.daemon.agents
        ada, bob = agents.find("ada"), agents.find("bob")
        assert agents.model_of(ada) == ("scripted", "scripted-model")
        assert agents.model_of(bob) == ("scripted", "another")
        ada = await soon(agents.set_mode(BY, ada, AgentMode.NORMAL))
        assert (ada.mode, ada.pinned_model) == (AgentMode.NORMAL, None)
        assert agents.model_of(agents.get(ada.id)) == ("scripted", "another")

    async def test_a_new_session_takes_the_place_of_the_old(self, stage: Stage) -> None:
        """That is deleted, or archived to go back to; who comes late is NotFound."""
        daemon = await stage.open()
        agents, sessions = daemon.daemon.agents, daemon.daemon.sessions
        ada = await spawned(daemon)
        talking = daemon.known_agent("ada")
        await soon(begin(talking, "hello").result())
        second = await soon(agents.new_session(ada, "", keep=True))
        assert agents.get(ada.id) == second
        assert await texts_of(talking) == []
        assert (await sessions.get(ada.session_id)).archived_at is not None
        with pytest.raises(NotFound):
            await soon(agents.new_session(ada, "", keep=True))
        back = await soon(agents.new_session(second, ada.session_id, keep=False))
        assert back.session_id == ada.session_id
        assert await texts_of(talking) == ["hello", "You said: hello"]
        with pytest.raises(NotFound):
            await sessions.get(second.session_id)

    async def test_a_deleted_agent_is_gone_with_all_it_had(self, stage: Stage) -> None:
        """Its turns end, its sessions and memory go; usage stays, the name is free."""
        daemon = await stage.open()
        agents, host = daemon.daemon.agents, daemon.daemon
        ada = await spawned(daemon)
        bob = await spawned(daemon, 'name = "bob"\n')
        talking = daemon.known_agent("ada")
        await soon(begin(talking, "hello").result())
        for agent in (ada, bob):
            await host.kv.set(Context(OPERATOR), agent.id, "key", agent.name)
        pause = stage.pause()
        daemon.model.says("half", pause)
        turn = begin(talking, "next")
        await soon(pause.reached.wait())
        used = await host.usage.of_agent(ada.id)
        await soon(agents.delete(BY, ada))
        assert turn.ended
        assert isinstance(await ending(turn), AgentHostError)
        assert (named(agents), host.turns.running) == (["bob"], 0)
        assert await host.sessions.list(SessionFilter(agent_id=ada.id)) == []
        assert await host.kv.items(ada.id) == []
        assert await host.kv.items(bob.id) == [("key", "bob")]
        assert (await host.usage.of_agent(ada.id)).requests >= used.requests > 0
        with pytest.raises(NotFound):
            await soon(agents.delete(BY, ada))
        again = await spawned(daemon)
        assert again.id != ada.id

    async def test_the_next_daemon_finds_the_same(self, stage: Stage) -> None:
        """In the same order, with all that was changed; who was deleted stays so."""
        daemon = await stage.open()
        agents = daemon.daemon.agents
        for name in ("cyd", "ada", "bob", "eve"):
            await spawned(daemon, f'name = "{name}"\n[capabilities]\ntools = ["*"]\n')
        await soon(agents.delete(BY, agents.find("eve")))
        await soon(agents.change(BY, agents.find("ada"), {"description": "new"}))
        await soon(agents.set_mode(BY, agents.find("bob"), AgentMode.STABLE))
        await soon(agents.new_session(agents.find("cyd"), "", keep=False))
        before = agents.list()
        daemon = await stage.open()
        after = daemon.daemon.agents
        assert named(after) == ["cyd", "ada", "bob"]
        assert [as_kept(agent) for agent in after.list()] == list(map(as_kept, before))
        assert after.exist.is_set()

    async def test_what_becomes_of_an_agent_is_told_once(self, stage: Stage) -> None:
        """After it is so; of what was refused nothing is told."""
        daemon = await stage.open()
        agents = daemon.daemon.agents
        told: list[LifecycleEvent] = []
        there: list[bool] = []

        def hear(event: LifecycleEvent) -> None:
            told.append(event)
            there.append("ada" in named(agents))

        daemon.daemon.events.subscribe(hear, LifecycleEvent)
        ada = await spawned(daemon)
        with pytest.raises(Conflict):
            await spawned(daemon)
        changed = await soon(agents.change(BY, ada, {"description": "new"}))
        await soon(agents.delete(BY, changed))
        kinds = [AgentSpawned, AgentUpdated, AgentTerminated]
        assert [type(event) for event in told] == kinds
        assert {(event.subject, event.name) for event in told} == {(ada.id, "ada")}
        assert there == [True, True, False]

    async def test_a_suspended_agent_stands_still_until_it_is_resumed(
        self, stage: Stage
    ) -> None:
        """Its turns end, it says why, also to the next daemon; both are told."""
        daemon = await stage.open()
        ada, pause = (await daemon.agent("ada")).id, stage.pause()
        agents = daemon.daemon.agents
        book = Recorded(daemon.daemon.events, LifecycleEvent)
        daemon.model.says("half", pause)
        turn = begin(daemon.known_agent("ada"), "count")
        await soon(agents.suspend(BY, agents.get(ada), "too loud"))
        assert isinstance(await ending(turn), Cancelled)
        daemon = await stage.open()
        agents = daemon.daemon.agents
        now = agents.get(ada)
        assert (now.state, now.reason) == (AgentState.SUSPENDED, "too loud")
        with pytest.raises(Conflict):
            now.check_accepts_messages()
        again = Recorded(daemon.daemon.events, LifecycleEvent)
        now = await soon(agents.resume(BY, now))
        assert (now.state, now.reason) == (AgentState.RUNNING, "")
        now.check_accepts_messages()
        assert [type(event) for event in book.kept] == [AgentSuspended]
        assert [type(event) for event in again.kept] == [AgentResumed]

    async def test_a_crashed_agent_is_started_again_by_itself(
        self, stage: Stage
    ) -> None:
        """Sooner or later; who is gone by then is no matter."""
        clock = ManualClock()
        daemon = await stage.open(clock=clock)
        agents, ada = daemon.daemon.agents, await spawned(daemon)
        agents.crash(ada.id, "it fell")

        async def back() -> bool:
            await clock.advance(1.0)
            standing = agents.get(ada.id).state
            return (agents.restarts, standing) == (1, AgentState.RUNNING)

        await until(back, "it runs again")

    async def test_what_an_agent_makes_is_its_child(self, stage: Stage) -> None:
        """It goes with its parent, and so do its own; the next daemon knows it."""
        daemon = await stage.open()
        await daemon.agent("ada")
        for parent, child in (("ada", "bob"), ("bob", "cyd")):
            maker = daemon.known_agent(parent).context()
            await soon(daemon.daemon.agents.spawn(maker, f'name = "{child}"\n'))
        await spawned(daemon, 'name = "eve"\n')
        daemon = await stage.open()
        agents = daemon.daemon.agents
        line = agents.above(agents.find("cyd").id)
        assert [agent.name for agent in line] == ["cyd", "bob", "ada"]
        await soon(agents.delete(BY, agents.find("ada")))
        assert named(agents) == ["eve"]

    async def test_what_becomes_of_an_agent_is_recorded_with_it(
        self, stage: Stage
    ) -> None:
        """Of what was refused nothing is kept; what nobody may keep does not happen."""
        daemon = await stage.open()
        agents = daemon.daemon.agents
        book = Recorded(daemon.daemon.events, LifecycleEvent)
        ada = await spawned(daemon)
        with pytest.raises(Conflict):
            await spawned(daemon)
        changed = await soon(agents.change(BY, ada, {"description": "new"}))
        book.refuses = (LifecycleEvent,)
        for refused in (
            spawned(daemon, 'name = "bob"\n'),
            soon(agents.set_mode(BY, ada, AgentMode.STABLE)),
            soon(agents.delete(BY, changed)),
        ):
            with pytest.raises(Unavailable, match="the book is closed"):
                await refused
        assert named(agents) == ["ada"]
        assert agents.get(ada.id) == changed
        book.refuses = ()
        await soon(agents.delete(BY, changed))
        assert book.kept == book.told
        assert [event.by for event in book.kept] == [BY.owner] * 3

    async def test_rights_are_what_the_manifest_asks_for(self, stage: Stage) -> None:
        """Nothing where it says nothing; a blocklist takes away."""
        daemon = await stage.open()
        agents = daemon.daemon.agents
        poor = await spawned(daemon)
        rich = await spawned(
            daemon,
            'name = "rich"\ntool_blocklist = ["file_write"]\n[capabilities]\n'
            'tools = ["file_*"]\nnetwork = ["*.example"]\nmemory_write = ["self.*"]\n',
        )
        assert not any(agents.grants_of(poor.manifest).values())
        known: Sequence[str] = ("file_read", "file_write", "calculate")
        granted: Mapping[str, tuple[str, ...]]
        granted = agents.grants_of(rich.manifest, known)
        assert granted["tool"] == ("file_read",)
        assert granted["network"] == ("*.example",)
        assert granted["memory_write"] == ("self.*",)
        assert granted["agent_message"] == ()
        assert agents.grants_of(rich.manifest)["tool"] == ("file_*",)


def as_kept(agent: Agent) -> tuple[object, ...]:
    """What of an agent the next daemon must find."""
    manifest = agent.manifest.model_dump(mode="json")
    own = agent.id, agent.name, agent.mode, agent.session_id, agent.pinned_model
    return (*own, agent.state, agent.created_at, agent.updated_at, manifest)
