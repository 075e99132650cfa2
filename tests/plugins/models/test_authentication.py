"""``[providers.<slug>] auth``: keys in a header, and tokens in place of keys."""

from __future__ import annotations

import asyncio

import pytest
from agenthost import ConfigError
from agenthost.testing import Daemons
from agenthost.testing.simulators import (
    BedrockWire,
    GeminiWire,
    OpenAIChatWire,
    ProviderSimulator,
    Reply,
    Turn,
)
from agenthost_models.authentication import vertex_address
from agenthost_models.settings import Vertex

from .test_extras import USED, house
from .token_endpoint import CLIENT, SECRET, TokenEndpoint, account_file, new_account

GOOGLE = "/publishers/google"
VERTEX = GeminiWire(base=GOOGLE, path=f"{GOOGLE}/models/*")
AZURE = OpenAIChatWire(base="/openai", path="/openai/deployments/*/chat/completions")
IN_CLEAR = "entra = { tenant = 't', client_id = 'c', authority = 'http://a.example' }"


def entra(upstream: ProviderSimulator, endpoint: TokenEndpoint) -> str:
    return house(
        upstream,
        "auth = 'entra'",
        "api_key_env = 'CLIENT_SECRET'",
        "[providers.house.entra]",
        "tenant = 'acme.example'",
        "client_id = 'app-1'",
        f"authority = '{endpoint.base_url}'",
    )


ENVIRON = {**USED, "CLIENT_SECRET": SECRET}


@pytest.mark.setting(
    "providers.<name>.auth",
    "providers.<name>.entra",
    "providers.<name>.entra.tenant",
    "providers.<name>.entra.client_id",
    "providers.<name>.entra.scope",
    "providers.<name>.entra.authority",
)
async def test_entra_gives_one_token_for_many_turns(daemons: Daemons) -> None:
    async with (
        TokenEndpoint() as endpoint,
        ProviderSimulator(OpenAIChatWire()) as upstream,
    ):
        config = entra(upstream, endpoint)
        running = await daemons.start(config=config, environ=ENVIRON)
        upstream.play(*[Turn("fine")] * 9)
        agents = [await running.agent(f"a{number}") for number in range(8)]
        await asyncio.gather(*(agent.ask("hello") for agent in agents))
        await agents[0].ask("again")
    assert endpoint.forms == [CLIENT]
    assert endpoint.paths == ["/v1/acme.example/oauth2/v2.0/token"]
    assert {each.headers["authorization"] for each in upstream.heard} == {
        "Bearer token-1"
    }


async def test_a_wrong_secret_is_told_without_being_shown(daemons: Daemons) -> None:
    async with (
        TokenEndpoint() as endpoint,
        ProviderSimulator(OpenAIChatWire()) as upstream,
    ):
        running = await daemons.start(
            config=entra(upstream, endpoint),
            environ={**ENVIRON, "CLIENT_SECRET": "wr0ng-secret-7"},
        )
        answer = await (await running.agent()).send("hello")
        trial = await running.http.post("/api/providers/house/test")
    assert answer.json()["code"] == "auth"
    assert "the token endpoint refused: invalid_client" in answer.json()["error"]
    assert "wr0ng-secret-7" not in answer.text + trial.text
    assert (trial.status_code, upstream.heard) == (401, [])


async def test_a_token_that_the_provider_refuses_is_renewed(daemons: Daemons) -> None:
    async with (
        TokenEndpoint() as endpoint,
        ProviderSimulator(OpenAIChatWire()) as upstream,
    ):
        config = entra(upstream, endpoint)
        running = await daemons.start(config=config, environ=ENVIRON)
        refusal = Reply((upstream.wire.refusal(401, "token-1 is over"),), 401)
        upstream.play(refusal, Turn("fine"))
        assert await (await running.agent()).ask("hello") == "fine"
    shown = [each.headers["authorization"] for each in upstream.heard]
    assert shown == ["Bearer token-1", "Bearer token-2"]


async def test_a_usual_key_is_not_sent_to_who_gives_tokens(daemons: Daemons) -> None:
    config = (
        "[providers.openai]\nauth = 'entra'\nbase_url = 'https://a.example/v1'\n"
        "[providers.openai.entra]\ntenant = 't'\nclient_id = 'c'\n"
    )
    running = await daemons.start(config=config, environ={"OPENAI_API_KEY": "sk-1"})
    models = running.daemon.models
    assert (models.keys_of("openai"), models.auth_status("openai")) == ([], "missing")
    assert models.providers["openai"].facts.probe is None


@pytest.mark.setting(
    "providers.<name>.vertex",
    "providers.<name>.vertex.project",
    "providers.<name>.vertex.region",
    "providers.<name>.vertex.token_url",
)
async def test_a_service_account_speaks_to_vertex(daemons: Daemons) -> None:
    account = new_account()
    async with (
        TokenEndpoint(account) as endpoint,
        ProviderSimulator(VERTEX) as upstream,
    ):
        config = "\n".join(
            (
                "[providers.house]",
                "auth = 'vertex'",
                f"base_url = '{upstream.base_url}'",
                "models = ['gemini-3.8-flash']",
                "[providers.house.vertex]",
                "project = 'acme'",
                "region = 'europe-west1'",
                f"token_url = '{endpoint.base_url}'",
            )
        )
        environ = {**USED, "AGENTHOST_DEFAULT_MODEL__MODEL": "gemini-3.8-flash"}
        running = await daemons.start(config=config, environ=environ)
        key = {"api_key": account_file(account)}
        kept = await running.http.post("/api/providers/house/key", json=key)
        assert kept.status_code == 200
        upstream.play(Turn("fine"))
        assert await (await running.agent()).ask("hello") == "fine"
        (heard,) = upstream.heard
    assert heard.headers["authorization"] == "Bearer token-1"
    assert "x-goog-api-key" not in heard.headers
    assert heard.url.startswith(
        "/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    )


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_vertex_has_an_address_in_each_region(region: str, host: str) -> None:
    address = vertex_address(Vertex(project="acme", region=region))
    path = f"/v1beta1/projects/acme/locations/{region}/publishers/google"
    assert address == f"https://{host}{path}"


async def test_gemini_moves_to_vertex_with_all_its_models(daemons: Daemons) -> None:
    config = "[providers.gemini]\nauth = 'vertex'\nvertex = { project = 'acme' }\n"
    running = await daemons.start(config=config, environ={"GEMINI_API_KEY": "AIza-1"})
    facts = running.daemon.models.providers["gemini"].facts
    assert facts.base_url == vertex_address(Vertex(project="acme"))
    assert len(facts.models) > 5
    assert running.daemon.models.auth_status("gemini") == "missing"


async def test_azure_takes_its_key_and_names_the_deployment(daemons: Daemons) -> None:
    async with ProviderSimulator(AZURE) as upstream:
        config = "\n".join(
            (
                "[providers.house]",
                f"base_url = '{upstream.base_url}/deployments/{{model}}'",
                "auth = 'api-key'",
                "api_key_env = 'AZURE_KEY'",
                "query = { api-version = '2024-10-21' }",
                "models = [{ id = 'small', upstream_id = 'our gpt/5' }]",
            )
        )
        environ = {**USED, "AZURE_KEY": "azure-key-1"}
        running = await daemons.start(config=config, environ=environ)
        upstream.play(Turn("fine"))
        assert await (await running.agent()).ask("hello") == "fine"
        (heard,) = upstream.heard
    assert heard.headers["api-key"] == "azure-key-1"
    assert "authorization" not in heard.headers
    assert heard.url == (
        "/openai/deployments/our%20gpt%2F5/chat/completions?api-version=2024-10-21"
    )


async def test_bedrock_takes_a_bearer_by_configuration(daemons: Daemons) -> None:
    async with ProviderSimulator(BedrockWire()) as upstream:
        config = house(
            upstream,
            "dialect = 'bedrock-converse'",
            "api_key_env = 'BEDROCK_KEY'",
            "auth = 'bearer'",
        )
        environ = {**USED, "BEDROCK_KEY": "bedrock-api-key-1"}
        running = await daemons.start(config=config, environ=environ)
        upstream.play(Turn("fine"))
        assert await (await running.agent()).ask("hello") == "fine"
    (heard,) = upstream.heard
    assert heard.headers["authorization"] == "Bearer bedrock-api-key-1"
    assert not [name for name in heard.headers if name.startswith("x-amz")]


async def test_a_probe_shows_the_key_as_calls_do(daemons: Daemons) -> None:
    config = "[providers.openai]\nauth = 'api-key'\n"
    running = await daemons.start(config=config)
    probe = running.daemon.models.providers["openai"].facts.probe
    assert probe is not None
    assert probe.headers == {"api-key": "{key}"}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("auth = 'entra'", "go together"),
        ("vertex = { project = 'acme' }", "go together"),
        ("auth = 'bearer'\nentra = { tenant = 't', client_id = 'c' }", "go together"),
        ("auth = 'entra'\nentra = { tenant = 't' }", "client_id"),
        (f"auth = 'entra'\n{IN_CLEAR}", "must be https"),
        ("auth = 'vertex'\nvertex = { project = 'a b' }", "must be 1 to 64"),
        ("auth = 'vertex'\nvertex = { project = '../..#?' }", "must be 1 to 64"),
        ("auth = 'basic'", "auth"),
        ("base_url = 'https://{model}.example'", "not in its host"),
        ("base_url = 'https://a.example/{region}'", "{model} alone"),
    ],
)
async def test_half_a_way_is_refused(daemons: Daemons, lines: str, told: str) -> None:
    with pytest.raises(ConfigError, match=r"providers\.groq") as refused:
        await daemons.start(config=f"[providers.groq]\n{lines}\n")
    assert told in str(refused.value)
