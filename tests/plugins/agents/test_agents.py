"""Finding agents: by id in any form, then by name."""

from __future__ import annotations

import pytest
from agenthost import NotFound
from agenthost.testing.daemons import RunningDaemon


async def test_an_agent_cannot_take_another_by_its_id_as_a_name(
    daemon: RunningDaemon,
) -> None:
    victim = await daemon.agent("victim")
    body = {"manifest_toml": f'name = "{victim.id}"'}
    refused = await daemon.http.post("/api/agents", json=body)
    assert refused.status_code == 400
    assert daemon.daemon.agents.find(victim.id).name == "victim"


@pytest.mark.manifest("name")
async def test_an_agent_is_found_by_name_and_by_any_form_of_its_id(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent("ada")
    found = daemon.daemon.agents.find
    assert found("ada").id == found(agent.id.upper()).id == agent.id
    assert found(f"urn:uuid:{agent.id}").id == agent.id
    with pytest.raises(NotFound):
        found("nobody")


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("HAND", 409, "exists already"),
        ("11111111-2222-4333-8444-555555555555", 400, "look like an id"),
        ("11111111222243338444555555555555", 400, "look like an id"),
    ],
)
async def test_a_name_that_could_be_taken_for_another_is_refused(
    daemon: RunningDaemon, name: str, status: int, words: str
) -> None:
    await daemon.agent("hand")
    body = {"manifest_toml": f'name = "{name}"'}
    refused = await daemon.http.post("/api/agents", json=body)
    assert (refused.status_code, words in refused.json()["error"]) == (status, True)
