"""Each engine is asked in its own dialect, and what it says is marked."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from agenthost import (
    UNTRUSTED,
    Denied,
    InvalidInput,
    ToolContext,
    Unavailable,
    UpstreamUnreachable,
)
from agenthost.testing.tools import offered_tools
from agenthost_tools.web_search.engines import chosen, read
from agenthost_tools.web_search.settings import WebSearchSection
from agenthost_tools.web_search.tool import WebSearch, web_search

from ..egress.wire import Heard, Wire, always, answer
from .conftest import FakeDaemon, limited

BEE = {"title": "Bees", "url": "https://bees.example"}
WHERE: dict[str, tuple[str, str]] = {
    "brave": ("GET", "/res/v1/web/search"),
    "tavily": ("POST", "/search"),
    "perplexity": ("POST", "/search"),
    "searxng": ("GET", "/search"),
}
SAID: dict[str, Any] = {
    "brave": {"web": {"results": [{**BEE, "description": "They hum."}]}},
    "tavily": {"results": [{**BEE, "content": "They hum.", "score": 0.9}]},
    "perplexity": {"results": [{**BEE, "snippet": "They hum.", "date": None}]},
    "searxng": {"results": [{**BEE, "content": "They hum.", "engine": "x"}]},
}


def settings(name: str, url: str, **more: Any) -> WebSearchSection:
    key = {} if name == "searxng" else {f"{name}_api_key": "k3y"}
    said = {f"{name}_url": url, "allowed_hosts": ("127.0.0.1",), **key, **more}
    return WebSearchSection.model_validate(said)


def key_of(name: str, heard: Heard) -> str | None:
    if name == "brave":
        return heard.header("x-subscription-token")
    return heard.header("authorization")


@pytest.mark.setting("web.search.brave_api_key", "web.search.brave_url")
@pytest.mark.setting("web.search.tavily_api_key", "web.search.tavily_url")
@pytest.mark.setting("web.search.perplexity_api_key", "web.search.perplexity_url")
@pytest.mark.setting("web.search.searxng_url", "web.search.allowed_hosts")
@pytest.mark.parametrize("name", list(WHERE))
async def test_an_engine_is_asked_as_its_vendor_says(
    daemon: FakeDaemon, context: ToolContext, name: str
) -> None:
    async with Wire(always(answer(json.dumps(SAID[name]).encode()))) as wire:
        daemon.search = settings(name, wire.url)
        said = await web_search(context, WebSearch(query="bees & co", max_results=3))
    (heard,) = wire.heard
    method, target, _ = heard.line.split()
    assert (method, urlsplit(target).path) == WHERE[name]
    query = {k: v[0] for k, v in parse_qs(urlsplit(target).query).items()}
    match name:
        case "brave":
            assert query == {"q": "bees & co", "count": "3"}
        case "searxng":
            assert query == {"q": "bees & co", "format": "json"}
        case _:
            assert json.loads(heard.body) == {"query": "bees & co", "max_results": 3}
    keys = {"brave": "k3y", "searxng": None}
    assert key_of(name, heard) == keys.get(name, "Bearer k3y")
    assert "Bees\nhttps://bees.example\nThey hum." in said.text
    assert "<<<begin untrusted " in said.text


def test_what_it_says_is_labelled() -> None:
    (spec,) = (each for each in offered_tools() if each.name == "web_search")
    assert spec.labels == UNTRUSTED


async def test_without_a_key_it_says_how_to_get_going(context: ToolContext) -> None:
    with pytest.raises(Unavailable, match=r"brave_api_key.*\[web.search\]"):
        await web_search(context, WebSearch(query="bees"))


@pytest.mark.setting("web.search.engine")
def test_the_named_engine_is_asked_and_no_other() -> None:
    both = {"brave_api_key": "a", "tavily_api_key": "b"}
    section = WebSearchSection.model_validate({**both, "engine": "tavily"})
    assert chosen(section)[0] == "tavily"
    assert chosen(WebSearchSection.model_validate(both))[0] == "brave"
    lacking = WebSearchSection.model_validate({**both, "engine": "perplexity"})
    with pytest.raises(Unavailable, match="perplexity_api_key"):
        chosen(lacking)


async def test_an_agent_without_the_network_does_not_search(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    async with Wire(always(answer(b"{}"))) as wire:
        daemon.search = settings("searxng", wire.url)
        with pytest.raises(Denied):
            await web_search(limited(context), WebSearch(query="bees"))
    assert not wire.heard


@pytest.mark.parametrize("status", ["401 No", "429 No", "500 No", "302 No"])
async def test_a_refusal_names_the_remedy_and_never_the_key(
    daemon: FakeDaemon, context: ToolContext, status: str
) -> None:
    async with Wire(always(answer(b"k3y", status=status))) as wire:
        daemon.search = settings("tavily", wire.url)
        with pytest.raises(UpstreamUnreachable, match=status[:3]) as caught:
            await web_search(context, WebSearch(query="bees"))
    assert "k3y" not in caught.value.message


@pytest.mark.setting("web.search.timeout_secs")
async def test_an_engine_that_is_silent_is_given_up(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    async def silent(heard: Heard, writer: Any) -> None:
        await writer.drain()

    async with Wire(silent) as wire:
        daemon.search = settings("searxng", wire.url, timeout_secs=0.05)
        with pytest.raises(UpstreamUnreachable, match="in time"):
            await web_search(context, WebSearch(query="bees"))


@pytest.mark.parametrize("name", list(WHERE))
@pytest.mark.parametrize(
    "said", [None, [], 1, "x", {"results": 1, "web": 1}, {"web": {"results": {}}}]
)
def test_an_answer_that_is_none_is_told_or_empty(name: str, said: Any) -> None:
    with suppress(InvalidInput):
        assert read(name, said, 5) == []


def test_what_is_no_result_is_left_out_and_long_ones_are_cut() -> None:
    rows = [None, 1, {}, {"title": 5, "url": "u"}, {"url": "u" * 9_000}]
    found = read("tavily", {"results": rows}, 5)
    assert [len(each.url) for each in found] == [1, 2_000]
    assert len(read("tavily", {"results": [BEE] * 50}, 5)) == 5
