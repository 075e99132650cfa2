"""``[providers.<slug>]`` adds headers, query and body to every request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from agenthost import ConfigError, ProviderError, ProviderFault
from agenthost.testing import Daemons
from agenthost.testing.simulators import (
    OpenAIChatWire,
    ProviderSimulator,
    Reply,
    Turn,
)
from agenthost_models.settings import ProviderSection
from pydantic import ValidationError

from .bench import Bench
from .upstream import Fails, Upstream

SECRET = "gw-5f0e1d2c3b4a"
USED = {
    "AGENTHOST_DEFAULT_MODEL__PROVIDER": "house",
    "AGENTHOST_DEFAULT_MODEL__MODEL": "small",
}


def house(upstream: ProviderSimulator, *lines: str) -> str:
    return "\n".join(
        (
            "[providers.house]",
            f"base_url = '{upstream.base_url}'",
            "models = ['small']",
            *lines,
        )
    )


@pytest.mark.setting(
    "providers.<name>.headers",
    "providers.<name>.headers_env",
    "providers.<name>.query",
    "providers.<name>.body",
)
async def test_a_turn_brings_along_what_is_configured(daemons: Daemons) -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        config = house(
            upstream,
            "headers = { X-Team = 'red' }",
            "headers_env = { X-Gateway-Key = 'GATEWAY' }",
            "query = { api-version = '2024-10-21' }",
            "body = { service_tier = 'flex', metadata = { a = [1, true] } }",
        )
        running = await daemons.start(
            config=config, environ={**USED, "GATEWAY": SECRET}
        )
        upstream.play(Turn("fine"))
        agent = await running.agent()
        await agent.ask("hello")
        (heard,) = upstream.heard
    assert heard.headers["x-team"] == "red"
    assert heard.headers["x-gateway-key"] == SECRET
    assert heard.url.endswith("/chat/completions?api-version=2024-10-21")
    assert heard.body["service_tier"] == "flex"
    assert heard.body["metadata"] == {"a": [1, True]}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("headers = { Authorization = 'x' }", "shows the key"),
        ("headers = { x-API-key = 'x' }", "shows the key"),
        ("headers = { X-Amz-Date = 'x' }", "shows the key"),
        ("headers_env = { Host = 'HOME' }", "written by the daemon"),
        ("headers = { Content-Length = '1' }", "written by the daemon"),
        ("headers = { Transfer-Encoding = 'chunked' }", "written by the daemon"),
        ('headers = { X-A = "a\\r\\nHost: b" }', "ASCII on one line"),
        ("headers = { X-A = 'é' }", "ASCII on one line"),
        ("headers = { X-A = '' }", "ASCII on one line"),
        ('headers = { "X A" = "b" }', "a header's name"),
        ('headers = { "X:A" = "b" }', "a header's name"),
        ("headers = { X-A = 'b', x-a = 'c' }", "one header twice"),
        ("headers = { X-A = 'b' }\nheaders_env = { x-A = 'C' }", "one header twice"),
        ("body = { n = 9 }", "'n' is written"),
        ("body = { a = { candidateCount = 9 } }", "'candidateCount' is what budgets"),
        ("query = { alt = 'json' }", "written by the daemon"),
        ('query = { "a&b" = "c" }', "must be a name"),
        ("body = { messages = [] }", "'messages' is written"),
        ("body = { stream = false }", "'stream' is written"),
        ("body = { model = 'dear' }", "'model' is written"),
        ("body = { contents = [] }", "'contents' is written"),
        ("body = { max_tokens = 9 }", "'max_tokens' is what budgets"),
        ("body = { options = { num_predict = 9 } }", "'num_predict' is what budgets"),
        ("body = { a = [{ maxTokens = 9 }] }", "'maxTokens' is what budgets"),
        ("body = { a = nan }", "finite"),
        ("body = { a = 2026-01-01 }", "body"),
    ],
)
async def test_what_may_not_be_added_is_refused_by_name(
    daemons: Daemons, line: str, told: str
) -> None:
    config = f"[providers.house]\nbase_url = 'https://a.example'\n{line}\n"
    with pytest.raises(ConfigError, match=r"providers\.house") as refused:
        await daemons.start(config=config)
    assert told in str(refused.value)


def test_a_bottomless_body_is_refused() -> None:
    body: dict[str, Any] = {}
    for _ in range(50):
        body = {"a": body}
    with pytest.raises(ValidationError, match="tables deep"):
        ProviderSection.model_validate({"body": body})


def test_what_is_added_is_shown_nowhere() -> None:
    section = ProviderSection.model_validate(
        {
            "headers": {"X-Gateway": SECRET},
            "query": {"sub": SECRET},
            "body": {"tier": "flex", "auth": [{"token": SECRET, "apiKey": SECRET}]},
        }
    )
    shown = section.model_dump(mode="json")
    assert SECRET not in f"{shown} {section!r}"
    assert shown["body"]["tier"] == "flex"


async def test_a_variable_that_is_not_set_is_told_and_left_out(
    daemons: Daemons,
) -> None:
    line = "headers_env = { X-A = 'GONE', X-B = 'BENT' }"
    config = f"[providers.house]\nbase_url = 'https://a.example'\n{line}\n"
    running = await daemons.start(config=config, environ={"BENT": "sk\nHost: evil"})
    facts = running.daemon.models.providers["house"].facts
    assert facts.extras.headers == {}
    told = "providers.house.headers_env"
    assert sorted(running.daemon.warnings) == [
        f"{told}.X-A: GONE is not set; requests go without it",
        f"{told}.X-B: BENT is no value of a header; requests go without it",
    ]


@pytest.mark.parametrize(
    "written",
    [
        {"headers": {"X-Gateway-Key": SECRET}},
        {"query": {"subscription-key": SECRET}},
        {"body": {"auth": {"token": SECRET}}},
        {"headers_env": {"X-Plain": "GATEWAY"}},
    ],
)
async def test_a_vendor_that_repeats_it_is_blotted(
    written: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    failing = Upstream("a", usual=Fails(ProviderFault.AUTH, detail=f"bad {SECRET}"))
    bench = Bench([failing], {"providers": {"a": written}})
    bench.environ["GATEWAY"] = SECRET
    bench.restart()
    with caplog.at_level(logging.DEBUG), pytest.raises(ProviderError) as told:
        await bench.passing(bench.ask("a", bench.payer()))
    assert told.value.detail == "bad ***"
    assert SECRET not in caplog.text


async def test_a_refusal_over_http_shows_none_of_it(daemons: Daemons) -> None:
    async with ProviderSimulator(OpenAIChatWire()) as upstream:
        config = house(upstream, f"headers = {{ X-Gateway-Key = '{SECRET}' }}")
        running = await daemons.start(config=config, environ=USED)
        body = upstream.wire.refusal(403, f"no such key: {SECRET}")
        upstream.play(Reply((body,), 403))
        agent = await running.agent()
        answer = await agent.send("hello")
    assert answer.status_code == 500
    assert "no such key: ***" in answer.text
    assert SECRET not in answer.text


def test_a_short_value_is_not_looked_for() -> None:
    section = {"headers": {"X-Key": "a"}, "body": {"prompt_cache_key": "b"}}
    bench = Bench([Upstream("a")], {"providers": {"a": section}})
    assert bench.models.providers["a"].facts.extras.secrets == ()
