"""One resolver: the model that somebody names goes where the name says."""

from __future__ import annotations

import asyncio
import json

import pytest
from agenthost import ConfigError, InvalidInput
from agenthost.testing.daemons import Daemons, RunningAgent, RunningDaemon
from websockets.asyncio.client import connect

from .bench import Bench
from .test_local import NO_DEFAULT, answering
from .upstream import Upstream

TWINS = """
[providers.first]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "FIRST_KEY"
models = ["slow-1", "echo-1"]

[providers.second]
base_url = "http://127.0.0.1:9/v1"
api_key_env = "SECOND_KEY"
models = ["slow-1", { id = "echo-2", aliases = ["echo"] }]
"""
OFFLINE = {**NO_DEFAULT, "SECOND_KEY": "sk-second"}


async def put(agent: RunningAgent, model: str, **more: str) -> tuple[str, str, str]:
    """Change the agent's model; give provider, model and message of the answer."""
    url = f"/api/agents/{agent.id}"
    body = {"model": model, **more}
    answer = (await agent.host.http.put(f"{url}/model", json=body)).json()
    shown = (await agent.host.http.get(url)).json()["model"]
    assert shown == {"provider": answer["provider"], "model": answer["model"]}
    return answer["provider"], answer["model"], answer.get("message", "")


@pytest.fixture
async def twins(daemons: Daemons) -> RunningDaemon:
    """A daemon whose default is offline, with two providers that share an id."""
    return await daemons.start(config=TWINS, environ=OFFLINE)


@pytest.mark.parametrize(
    ("named", "provider", "model"),
    [
        ("anthropic/claude-sonnet-5-5", "anthropic", "claude-sonnet-5-5"),
        ("anthropic/sonnet", "anthropic", "claude-sonnet-5-5"),
        ("OpenAI/GPT-5.5", "openai", "gpt-5.5"),
        ("groq/openai/gpt-oss-120b", "groq", "groq/openai/gpt-oss-120b"),
        ("  sonnet  ", "anthropic", "claude-sonnet-5-5"),
        ("gpt-5.5", "openai", "gpt-5.5"),
    ],
)
async def test_a_change_follows_the_name_and_not_the_present_provider(
    daemons: Daemons, named: str, provider: str, model: str
) -> None:
    daemon = await daemons.start(environ=NO_DEFAULT)
    agent = await daemon.agent(extra='[model]\nprovider = "offline"\n')
    assert await put(agent, named) == (provider, model, "")


@pytest.mark.parametrize(
    ("named", "provider", "model"),
    [
        ("groq/llama-9", "groq", "llama-9"),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b"),
        ("mistral/new", "mistral", "new"),
        ("new", "offline", "new"),
    ],
)
async def test_a_name_that_nobody_lists_is_told(
    daemons: Daemons, named: str, provider: str, model: str
) -> None:
    daemon = await daemons.start(environ=NO_DEFAULT)
    agent = await daemon.agent(extra='[model]\nprovider = "offline"\n')
    slug, given, message = await put(agent, named)
    assert (slug, given) == (provider, model)
    assert f"{provider} lists no model {model!r}" in message
    manifest = f'name = "b"\n[model]\nmodel = "{named}"\n'
    created = await daemon.http.post("/api/agents", json={"manifest_toml": manifest})
    assert any(message in warning for warning in created.json()["warnings"])


async def test_a_retired_id_leads_on_within_the_provider_that_is_named(
    daemon: RunningDaemon,
) -> None:
    slug, model, message = await put(
        await daemon.agent(), "groq/llama-3.3-70b-versatile"
    )
    assert (slug, model) == ("groq", "groq/openai/gpt-oss-120b")
    assert "is retired" in message


@pytest.mark.parametrize("named", ["echo-1", "first/echo-1", " First/ECHO-1 "])
async def test_the_providers_own_prefix_is_taken_off(
    twins: RunningDaemon, named: str
) -> None:
    """A manifest and a change agree, and upstream is asked for its own id."""
    manifest = f'[model]\nprovider = "first"\nmodel = "{named}"\n'
    agent = await twins.agent(extra=manifest)
    target = twins.daemon.agents.target_of(twins.daemon.agents.get(agent.id))
    assert (target.names, target.model.upstream_id) == (("first", "echo-1"), "echo-1")
    assert await put(agent, named) == ("first", "echo-1", "")


async def test_an_id_of_two_providers_stays_with_the_agents_own(
    twins: RunningDaemon,
) -> None:
    agent = await twins.agent(extra='[model]\nprovider = "first"\n')
    slug, model, message = await put(agent, "slow-1")
    assert (slug, model) == ("first", "slow-1")
    assert "also a model of second" in message
    assert await put(agent, "second/slow-1") == ("second", "slow-1", "")


async def test_an_id_of_two_providers_goes_to_the_one_with_a_key(
    twins: RunningDaemon,
) -> None:
    agent = await twins.agent(extra='[model]\nprovider = "offline"\n')
    slug, _, message = await put(agent, "slow-1")
    assert slug == "second"
    assert "also a model of first" in message
    assert (await twins.http.get("/api/models/slow-1")).json()["provider"] == "second"
    created = await twins.http.post(
        "/api/agents",
        json={"manifest_toml": 'name = "b"\n[model]\nmodel = "slow-1"\n'},
    )
    assert any("also a model of first" in w for w in created.json()["warnings"])


async def test_a_list_shows_ids_that_lead_to_their_rows(twins: RunningDaemon) -> None:
    rows = (await twins.http.get("/api/models")).json()["models"]
    ids = [row["id"] for row in rows]
    assert len(ids) == len(set(ids))
    assert {"slow-1", "first/slow-1"} <= set(ids)
    for row in rows:
        shown = (await twins.http.get(f"/api/models/{row['id']}")).json()
        assert (shown["id"], shown["provider"]) == (row["id"], row["provider"])


async def test_a_provider_that_is_named_is_never_left(twins: RunningDaemon) -> None:
    agent = await twins.agent(extra='[model]\nprovider = "offline"\n')
    for named in ("sonnet", "openai/gpt-5.5", "second/slow-1"):
        slug, model, message = await put(agent, named, provider="first")
        assert (slug, model) == ("first", named)
        assert "first lists no model" in message


async def test_a_choice_leads_to_the_same_model_again(twins: RunningDaemon) -> None:
    models = twins.daemon.models
    for named in ("first/first/odd", "sonnet", "groq/new", "first/echo-1", "new"):
        target = (await models.choose(None, named)).target
        assert models.resolve(*target.names) == target
    odd = (await models.choose(None, "first/first/odd")).target
    assert odd.model.upstream_id == "first/odd"


async def test_an_unknown_provider_is_refused_with_what_was_meant(
    twins: RunningDaemon,
) -> None:
    with pytest.raises(InvalidInput, match="did you mean 'groq'"):
        await twins.daemon.models.choose("grok", "x")


async def test_the_chat_command_resolves_as_a_change_does(
    twins: RunningDaemon,
) -> None:
    agent = await twins.agent(extra='[model]\nprovider = "offline"\n')
    address = f"{twins.url.replace('http', 'ws')}/api/agents/{agent.id}/ws"
    async with connect(address) as socket, asyncio.timeout(20):
        await socket.send(json.dumps({"type": "message", "content": "/model groq/new"}))
        while "The model is" not in (told := str(await socket.recv())):
            pass
    assert "The model is now new at groq." in told
    assert "groq lists no model 'new'" in told


async def test_what_is_installed_on_this_machine_counts_as_listed(
    daemons: Daemons,
) -> None:
    has = json.dumps({"models": [{"name": "mine:7b"}, {"name": "groq/odd"}]})
    async with answering(has) as address:
        daemon = await daemons.start(
            config=f'[providers.ollama]\nbase_url = "{address}"\n'
        )
        agent = await daemon.agent()
        assert await put(agent, "mine:7b") == ("ollama", "mine:7b", "")
        slug, model, message = await put(agent, "groq/odd")
        assert (slug, model) == ("ollama", "groq/odd")
        assert "also a model of groq" in message
        assert "lists no model" in (await put(agent, "yours:7b"))[2]


async def test_a_local_server_of_the_openai_kind_tells_what_it_has(
    daemons: Daemons,
) -> None:
    async with answering(json.dumps({"data": [{"id": "house-7b"}]})) as address:
        daemon = await daemons.start(
            config=f'[providers.vllm]\nbase_url = "{address}/v1"\n'
        )
        assert await put(await daemon.agent(), "house-7b") == (
            "vllm",
            "house-7b",
            "",
        )


class Counting(dict[str, str]):
    """An environment that counts how often it is asked."""

    asked = 0

    def get(self, key: str, default: str = "") -> str:  # type: ignore[override]
        self.asked += 1
        return super().get(key, default)


async def test_agents_are_shown_without_asking_for_keys_again() -> None:
    bench = Bench([Upstream("a", key_required=True), Upstream("b", key_required=True)])
    bench.daemon.environ = environ = Counting(B_KEY="sk-b")
    bench.restart()
    models = bench.models
    assert models.names_of_default() == ("b", "b-model")
    before = environ.asked
    for _ in range(500):
        assert models.names_of_default() == ("b", "b-model")
        assert models.resolve(None, "a-model").names == ("a", "a-model")
        assert models.find("b-model") is not None
    assert environ.asked - before <= 4


async def test_a_changed_key_changes_the_default_at_once() -> None:
    from agenthost import Secret

    bench = Bench([Upstream("a", key_required=True), Upstream("b", key_required=True)])
    bench.environ["B_KEY"] = "sk-b"
    assert bench.models.names_of_default() == ("b", "b-model")
    bench.vault["provider/a"] = Secret("sk-a")
    bench.vault.revision += 1
    assert bench.models.names_of_default() == ("a", "a-model")


async def test_a_key_set_over_http_changes_the_default(daemons: Daemons) -> None:
    daemon = await daemons.start(environ=NO_DEFAULT)
    assert daemon.daemon.models.names_of_default()[0] == "offline"
    await daemon.http.post("/api/providers/groq/key", json={"key": "gsk-x"})
    assert daemon.daemon.models.names_of_default()[0] == "groq"
    await daemon.http.delete("/api/providers/groq/key")
    assert daemon.daemon.models.names_of_default()[0] == "offline"


def checked(provider: str | None, model: str | None = None) -> list[str]:
    """Check a configured default among two providers, one of which lacks a key."""
    bench = Bench(
        [Upstream("groq", key_required=True), Upstream("house")],
        {"default_model": {"provider": provider, "model": model}},
    )
    return bench.models.check_default()


def test_a_default_that_can_answer_is_no_reason_to_warn() -> None:
    assert checked("house") == checked("house", "house-model") == checked(None) == []


@pytest.mark.parametrize("provider", ["grok", "Groqq"])
def test_a_default_provider_that_nobody_offers_stops_the_start(provider: str) -> None:
    with pytest.raises(ConfigError) as caught:
        checked(provider)
    assert caught.value.message.startswith("default_model.provider: unknown provider")
    assert "did you mean 'groq'" in caught.value.message


def test_a_default_without_a_key_is_told_with_both_remedies() -> None:
    (told,) = checked("groq")
    assert told.startswith("default_model: groq: no API key; set GROQ_KEY in ")
    assert told.endswith("POST it to /api/providers/groq/key")


@pytest.mark.setting("default_model.provider", "default_model.model")
def test_a_default_that_nobody_lists_is_told() -> None:
    (told,) = checked("house", "house-modle")
    assert "house lists no model 'house-modle'" in told
    assert "did you mean 'house-model'" in told


def test_a_default_model_may_be_named_without_its_provider() -> None:
    bench = Bench(
        [Upstream("a"), Upstream("b")], {"default_model": {"model": "b-model"}}
    )
    assert bench.models.names_of_default() == ("b", "b-model")
