"""Models are found by id, by alias and by the retired id they replace."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agenthost.testing.daemons import Daemons, RunningDaemon


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
    body = answer.json()
    notice = body.pop("message", None)
    assert body == {"status": "updated", "model": model, "provider": provider}
    assert (notice is not None) is (name == "deepseek-chat")


async def test_an_alias_is_known_within_its_provider(daemon: RunningDaemon) -> None:
    target = daemon.daemon.models.resolve("anthropic", "Sonnet")
    assert target.model.id == "claude-sonnet-5-5"


async def test_every_alias_leads_to_its_model(daemon: RunningDaemon) -> None:
    answer = (await daemon.http.get("/api/models/aliases")).json()
    for alias, model in answer["aliases"].items():
        assert daemon.daemon.models.resolve(None, alias).model.id == model, alias


async def test_every_retired_id_leads_to_an_active_model(
    daemon: RunningDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    models = daemon.daemon.models
    rows = [row for spec in models.providers.values() for row in spec.facts.models]
    retired = {old: row for row in rows for old in row.replaces}
    assert len(retired) > 30
    for old, row in retired.items():
        for provider in (None, row.provider):
            model = models.resolve(provider, old.upper()).model
            assert (model.id, model.status) == (row.id, "active"), old
        shown = (await daemon.http.get(f"/api/models/{old}")).json()
        assert shown["id"] == row.id
        assert shown["warning"] == f"{old} is retired; {row.id} takes its place"
    # The log tells of each, and once.
    told = [r.getMessage() for r in caplog.records if "retired" in r.getMessage()]
    assert len(told) == len(retired)


async def test_whoever_chooses_a_model_that_ends_is_told(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    for name, model, told in (
        ("o3", "gpt-5.5", "o3 is retired; gpt-5.5 takes its place"),
        ("gpt-5", "gpt-5", "gpt-5 ends on 2026-12-11; use gpt-5.5"),
    ):
        url = f"/api/agents/{agent.id}/model"
        answer = (await daemon.http.put(url, json={"model": name})).json()
        assert (answer["model"], answer["message"]) == (model, told)
    shown = (await daemon.http.get("/api/models/gpt-5")).json()
    assert (shown["id"], shown["replaced_by"]) == ("gpt-5", "gpt-5.5")
    assert "2026-12-11" in shown["warning"]


HOUSE = """
[providers.openai]
models = [{ id = "gpt-5.5-pro", input_cost_per_1m = 0.5 }]

[providers.groq]
models = ["openai/gpt-oss-120b", { id = "new", aliases = ["newest"] }]

[providers.house]
base_url = "http://127.0.0.1:9/v1"
models = [
  { id = "own", aliases = ["mine", "Sonnet", "newest", "claude-opus-5", "o3"] },
  { id = "other", aliases = ["MINE", "theirs"] },
]
"""


async def test_a_model_that_is_known_keeps_what_is_not_written(
    daemons: Daemons,
) -> None:
    plain, changed = await daemons.start(), await daemons.start(config=HOUSE)
    before = plain.daemon.models.resolve("openai", "gpt-5.5-pro").model
    target = changed.daemon.models.resolve("openai", "gpt-5.5-pro")
    assert target.model == replace(before, input_cost_per_1m=0.5)
    spoken = target.provider.spoken_to(target.model.upstream_id)
    assert spoken.name == "openai-responses"
    for name in ("openai/gpt-oss-120b", "groq/openai/gpt-oss-120b"):
        row = changed.daemon.models.resolve("groq", name).model
        assert row == plain.daemon.models.resolve("groq", name).model
    models = changed.daemon.models.providers["groq"].facts.models
    assert [row.id for row in models] == ["groq/openai/gpt-oss-120b", "new"]


async def test_a_model_of_the_configuration_has_aliases(daemons: Daemons) -> None:
    models = (await daemons.start(config=HOUSE)).daemon.models
    for name, model in (("mine", "own"), ("THEIRS", "other"), ("newest", "new")):
        assert models.resolve(None, name).model.id == model
    # An alias in use goes before the retired id of another model.
    assert models.resolve(None, "o3").model.id == "own"


async def test_an_alias_that_is_taken_is_left_out_and_told(daemons: Daemons) -> None:
    daemon = await daemons.start(config=HOUSE)
    assert sorted(daemon.daemon.warnings) == [
        f"providers.house.models: alias {alias!r} of {model!r} is left out: "
        f"{holder} has that name; choose another"
        for alias, model, holder in (
            ("MINE", "other", "'own' of house"),
            ("Sonnet", "own", "'claude-sonnet-5-5' of anthropic"),
            ("claude-opus-5", "own", "'claude-opus-5' of anthropic"),
            ("newest", "own", "'new' of groq"),
        )
    ]
    listed = (await daemon.http.get("/api/models/aliases")).json()["aliases"]
    assert (listed["sonnet"], listed["mine"]) == ("claude-sonnet-5-5", "own")
    assert "claude-opus-5" not in listed
