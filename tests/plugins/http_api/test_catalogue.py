"""The catalogue of models as the API shows it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from agenthost.testing.daemons import Daemons, RunningDaemon

SPECIFIED = {
    "id": str,
    "provider": str,
    "display_name": str,
    "tier": str,
    "context_window": int,
    "input_cost_per_1m": float,
    "output_cost_per_1m": float,
    "supports_tools": bool,
    "supports_vision": bool,
    "supports_streaming": bool,
}
OWN = """
[providers.house]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "HOUSE_KEY"
models = ["tiny", { id = "Big:1", tier = "smart", input_cost_per_1m = 2.5 }]
"""


async def listed(daemon: RunningDaemon, **query: str) -> list[dict[str, Any]]:
    answer = await daemon.http.get("/api/models", params=query)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["total"] == len(body["models"])
    return list(body["models"])


async def test_there_are_200_models_with_every_field(daemon: RunningDaemon) -> None:
    models = await listed(daemon)
    assert len(models) >= 200
    assert len({model["id"] for model in models}) == len(models)
    for model in models:
        for name, kind in SPECIFIED.items():
            assert type(model[name]) is kind, (model["id"], name)
    assert len({model["provider"] for model in models}) >= 18


async def test_there_are_55_aliases_and_each_leads_to_its_model(
    daemon: RunningDaemon,
) -> None:
    body = (await daemon.http.get("/api/models/aliases")).json()
    assert body["total"] == len(body["aliases"]) >= 55
    ids = {model["id"] for model in await listed(daemon)}
    assert set(body["aliases"].values()) <= ids
    for alias in ("sonnet", "GPT4O"):
        model = (await daemon.http.get(f"/api/models/{alias}")).json()
        assert model["id"] == body["aliases"][alias.lower()]


async def test_every_model_is_found_by_its_id(daemon: RunningDaemon) -> None:
    odd = [m for m in await listed(daemon) if set(m["id"]) & set("/:")]
    assert len(odd) > 50
    for model in [odd[0], odd[-1], next(m for m in odd if ":" in m["id"])]:
        for path in (model["id"], quote(model["id"], safe=""), model["id"].upper()):
            answer = await daemon.http.get(f"/api/models/{path}")
            assert answer.json() == model


async def test_a_retired_id_leads_to_its_successor(daemon: RunningDaemon) -> None:
    body = (await daemon.http.get("/api/models/claude-3-5-sonnet-20241022")).json()
    assert body["provider"] == "anthropic"
    assert body["id"] in body["warning"]
    assert "claude-3-5-sonnet-20241022 is retired" in body["warning"]


async def test_an_unknown_model_is_named_with_the_catalogue(
    daemon: RunningDaemon,
) -> None:
    answer = await daemon.http.get("/api/models/no/such:model")
    assert answer.status_code == 404
    assert "no/such:model" in answer.json()["error"]
    assert "catalog" in answer.json()["error"]
    near = await daemon.http.get("/api/models/gpt-4oo")
    assert "did you mean 'gpt-4o'?" in near.json()["error"]


async def test_models_are_filtered(daemons: Daemons) -> None:
    daemon = await daemons.start(environ={"GROQ_API_KEY": "k"})
    everything = await listed(daemon)
    groq = await listed(daemon, provider="groq")
    assert {model["provider"] for model in groq} == {"groq"}
    assert all(model["available"] for model in groq)
    fast = await listed(daemon, tier="fast", provider="groq")
    assert fast == [model for model in groq if model["tier"] == "fast"]
    available = await listed(daemon, available="true")
    missing = await listed(daemon, available="false")
    assert "groq" in {model["provider"] for model in available}
    assert "openai" in {model["provider"] for model in missing}
    assert len(available) + len(missing) == len(everything)
    assert await listed(daemon, provider="nobody") == []


@pytest.mark.parametrize("query", ["tier=best", "available=perhaps"])
async def test_a_filter_that_means_nothing_is_refused(
    daemon: RunningDaemon, query: str
) -> None:
    answer = await daemon.http.get(f"/api/models?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(query.partition("=")[0])


async def test_models_of_the_configuration_are_listed(daemons: Daemons) -> None:
    daemon = await daemons.start(config=OWN)
    tiny, big = await listed(daemon, provider="house")
    assert (tiny["id"], tiny["tier"], tiny["available"]) == ("tiny", "custom", False)
    assert (big["id"], big["tier"], big["input_cost_per_1m"]) == ("Big:1", "smart", 2.5)
    for name in ("big:1", "house/Big:1"):
        assert (await daemon.http.get(f"/api/models/{name}")).json() == big
