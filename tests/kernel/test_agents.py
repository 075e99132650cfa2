"""Finding agents: by id in any form, then by name."""

from __future__ import annotations

import pytest
from agenthost import NotFound
from agenthost.testing.daemons import RunningDaemon


async def test_an_agent_cannot_take_another_by_its_id_as_a_name(
    daemon: RunningDaemon,
) -> None:
    victim = await daemon.agent("victim")
    await daemon.agent(victim.id)
    assert daemon.daemon.agents.find(victim.id).name == "victim"


async def test_an_agent_is_found_by_name_and_by_any_form_of_its_id(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    found = daemon.daemon.agents.find
    assert found("ada").id == found(agent.id.upper()).id == agent.id
    assert found(f"urn:uuid:{agent.id}").id == agent.id
    with pytest.raises(NotFound):
        found("nobody")
