"""Agents that agents make: what they may, what they spend, and how they end."""

from __future__ import annotations

import asyncio
import json

import pytest
from agenthost import OPERATOR, Conflict, Context, Denied, ToolOutput, Total
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_agents.family import DEEPEST, MOST_CHILDREN

SPAWNS = ["agent_spawn", "agent_kill", "calculate", "agent_call"]


async def maker(daemon: RunningDaemon, name: str = "ada", extra: str = "") -> str:
    """Make an agent that may make others."""
    manifest = (
        f'name = "{name}"\n{extra}\n[capabilities]\nagent_spawn = true\n'
        f'agent_message = ["*"]\ntools = {json.dumps(SPAWNS)}\n'
    )
    answer = await daemon.http.post("/api/agents", json={"manifest_toml": manifest})
    return str(answer.json()["agent_id"])


def last(daemon: RunningDaemon) -> ToolOutput:
    message = daemon.model.requests[-1].messages[-1]
    (part,) = (part for part in message.parts if isinstance(part, ToolOutput))
    return part


async def used(agent: RunningAgent, tool: str, **arguments: str) -> ToolOutput:
    agent.host.model.calls(tool, **arguments)
    await agent.ask("go")
    return last(agent.host)


async def test_an_agent_makes_one_with_no_more_rights_and_ends_it(
    daemon: RunningDaemon,
) -> None:
    await maker(daemon)
    ada = daemon.known_agent("ada")
    child = 'name = "bob"\n[capabilities]\ntools = ["{}"]\n'
    refused = await used(ada, "agent_spawn", manifest_toml=child.format("shell_exec"))
    assert refused.is_error
    assert "does not hold" in refused.text
    made = await used(ada, "agent_spawn", manifest_toml=child.format("calculate"))
    assert not made.is_error
    bob = json.loads(made.text)["agent_id"]
    detail = (await daemon.http.get(f"/api/agents/{bob}")).json()
    assert detail["parent"] == ada.id
    killed = await used(ada, "agent_kill", agent_id="bob")
    assert json.loads(killed.text) == {"status": "killed", "agent_id": bob}
    assert [agent.name for agent in daemon.daemon.agents.list()] == ["ada"]
    again = await used(ada, "agent_kill", agent_id="bob")
    assert "bob" in again.text
    assert again.is_error


async def test_only_what_comes_from_an_agent_may_be_ended_by_it(
    daemon: RunningDaemon,
) -> None:
    await maker(daemon)
    await maker(daemon, "eve")
    ada, agents = daemon.known_agent("ada"), daemon.daemon.agents
    child = 'name = "bob"\n[capabilities]\ntools = ["agent_kill"]\n'
    await agents.spawn(daemon.known_agent("eve").context(), child)
    for name in ("ada", "eve", "bob"):
        refused = await used(ada, "agent_kill", agent_id=name)
        assert refused.is_error
        assert "does not come from you" in refused.text
    assert (
        await used(daemon.known_agent("bob"), "agent_kill", agent_id="eve")
    ).is_error
    assert len(agents) == 3


async def test_without_the_right_no_agent_is_made(daemon: RunningDaemon) -> None:
    agent = await daemon.agent("poor", tools=["agent_spawn"])
    refused = await used(agent, "agent_spawn", manifest_toml='name = "bob"\n')
    assert refused.is_error
    assert "agent_spawn" in refused.text
    assert len(daemon.daemon.agents) == 1


async def test_children_are_counted_also_at_once_and_so_are_generations(
    daemon: RunningDaemon,
) -> None:
    await maker(daemon)
    agents, context = daemon.daemon.agents, daemon.known_agent("ada").context()
    spawning = [
        agents.spawn(context, f'name = "child{number}"\n')
        for number in range(MOST_CHILDREN + 3)
    ]
    ends = await asyncio.gather(*spawning, return_exceptions=True)
    assert sum(isinstance(end, Conflict) for end in ends) == 3
    assert len(agents) == 1 + MOST_CHILDREN
    name = "child0"
    for depth in range(DEEPEST - 2):
        inside = daemon.known_agent(name).context()
        name = f"deeper{depth}"
        await agents.spawn(inside, f'name = "{name}"\n')
    with pytest.raises(Conflict, match="nested"):
        await agents.spawn(daemon.known_agent(name).context(), 'name = "deepest"\n')


async def test_a_right_that_a_maker_lacks_is_handed_on_to_nobody(
    daemon: RunningDaemon,
) -> None:
    await maker(daemon)
    context = daemon.known_agent("ada").context()
    for more in ('network = ["*"]', 'memory_read = ["*"]', 'shell = ["git"]'):
        manifest = f'name = "bob"\n[capabilities]\n{more}\n'
        with pytest.raises(Denied):
            await daemon.daemon.agents.spawn(context, manifest)


async def test_calls_of_a_child_are_calls_of_its_maker(daemon: RunningDaemon) -> None:
    await maker(daemon, extra="resources.max_tool_calls_per_minute = 3")
    child = (
        'name = "bob"\nresources.max_tool_calls_per_minute = 0\n'
        '[capabilities]\ntools = ["calculate"]\n'
    )
    await daemon.daemon.agents.spawn(daemon.known_agent("ada").context(), child)
    bob = daemon.known_agent("bob")
    for number in range(4):
        output = await used(bob, "calculate", expression="1+1")
        assert output.is_error is (number == 3)
    assert "more than 3 tool calls" in last(daemon).text


async def test_what_a_deleted_child_has_spent_is_its_makers(
    daemon: RunningDaemon,
) -> None:
    await maker(daemon)
    ada, usage = daemon.known_agent("ada"), daemon.daemon.usage
    bob, _ = await daemon.daemon.agents.spawn(ada.context(), 'name = "bob"\n')
    await daemon.known_agent("bob").ask("hello")
    spent = await usage.of_agent(bob.id)
    assert (spent.requests, await usage.of_agent(ada.id)) == (1, Total())
    await daemon.daemon.agents.delete(Context(OPERATOR), bob)
    assert await usage.of_agent(ada.id) == spent
    assert await usage.of_agent(bob.id) == Total()
