"""Models are found by id, by alias and by the retired id they replace."""

from __future__ import annotations

import pytest
from agenthost.testing.daemons import RunningDaemon


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("sonnet", "anthropic", "claude-sonnet-5-5"),
        ("Claude-Sonnet", "anthropic", "claude-sonnet-5-5"),
        ("gpt4o", "openai", "gpt-4o"),
        ("deepseek-chat", "deepseek", "deepseek-flash"),
    ],
)
async def test_an_agent_takes_a_model_by_another_name(
    daemon: RunningDaemon, name: str, provider: str, model: str
) -> None:
    agent = await daemon.agent()
    answer = await daemon.http.put(
        f"/api/agents/{agent.id}/model", json={"model": name}
    )
    assert answer.json() == {"status": "updated", "model": model, "provider": provider}


async def test_an_alias_is_known_within_its_provider(daemon: RunningDaemon) -> None:
    target = daemon.daemon.models.resolve("anthropic", "Sonnet")
    assert target.model.id == "claude-sonnet-5-5"


async def test_every_alias_leads_to_its_model(daemon: RunningDaemon) -> None:
    answer = (await daemon.http.get("/api/models/aliases")).json()
    for alias, model in answer["aliases"].items():
        assert daemon.daemon.models.resolve(None, alias).model.id == model, alias
