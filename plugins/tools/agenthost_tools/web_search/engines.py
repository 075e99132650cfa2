"""What each engine is asked and answers: pure functions, one row an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from agenthost import InvalidInput, Unavailable
from agenthost_values.value_class import value_class

from .settings import WebSearchSection

TITLE_CHARACTERS = 300
URL_CHARACTERS = 2_000
EXCERPT_CHARACTERS = 1_000
HOW = (
    "no search engine is configured; the operator can set brave_api_key, "
    "tavily_api_key, perplexity_api_key or searxng_url under [web.search] in "
    "config.toml"
)


@value_class
class Asked:
    """A request of an engine: what it has in its address, its headers, its body."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None = None


@value_class
class Found:
    """A page that an engine knows."""

    title: str
    url: str
    excerpt: str


@value_class
class Engine:
    """An engine: how it is asked, where its results stand, what it calls an excerpt."""

    ask: Callable[[str, int, str], Asked]
    where: tuple[str, ...]
    excerpt: str


def _brave(query: str, most: int, key: str) -> Asked:
    # https://api-dashboard.search.brave.com/app/documentation/web-search
    params = {"q": query, "count": str(most)}
    headers = {"X-Subscription-Token": key, "Accept": "application/json"}
    return Asked("GET", "/res/v1/web/search", params, headers)


def _tavily(query: str, most: int, key: str) -> Asked:
    # https://docs.tavily.com/documentation/api-reference/endpoint/search
    body = {"query": query, "max_results": most}
    return Asked("POST", "/search", {}, {"Authorization": f"Bearer {key}"}, body)


def _perplexity(query: str, most: int, key: str) -> Asked:
    # https://docs.perplexity.ai/api-reference/search-post
    body = {"query": query, "max_results": most}
    return Asked("POST", "/search", {}, {"Authorization": f"Bearer {key}"}, body)


def _searxng(query: str, most: int, key: str) -> Asked:  # noqa: ARG001
    # https://docs.searxng.org/dev/search_api.html: it has no count and no key.
    return Asked("GET", "/search", {"q": query, "format": "json"}, {})


ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        "brave": Engine(_brave, ("web", "results"), "description"),
        "tavily": Engine(_tavily, ("results",), "content"),
        "perplexity": Engine(_perplexity, ("results",), "snippet"),
        "searxng": Engine(_searxng, ("results",), "content"),
    }
)


def chosen(settings: WebSearchSection) -> tuple[str, str, str]:
    """Give the engine that is asked: its name, its address, its key.

    Raises:
        Unavailable: None is configured, or the chosen one is not.
    """
    places = {
        "brave": (settings.brave_url, settings.brave_api_key),
        "tavily": (settings.tavily_url, settings.tavily_api_key),
        "perplexity": (settings.perplexity_url, settings.perplexity_api_key),
    }
    ready = {n: (url, key.reveal()) for n, (url, key) in places.items() if key}
    if settings.searxng_url:
        ready["searxng"] = (settings.searxng_url, "")
    name: str = settings.engine or next(iter(ready), "")
    if not name:
        raise Unavailable(HOW)
    if name not in ready:
        need = "searxng_url" if name == "searxng" else f"{name}_api_key"
        raise Unavailable(f"web search is not configured: [web.search] needs {need}")
    return name, *ready[name]


def read(name: str, answer: object, most: int) -> list[Found]:
    """Read an engine's answer; what in it is no result is left out.

    Raises:
        InvalidInput: It is no answer of that engine.
    """
    engine = ENGINES[name]
    for key in engine.where:
        # An engine that knows nothing leaves the part out.
        if not isinstance(answer, Mapping):
            raise InvalidInput("", f"{name} answered something else than results")
        answer = answer.get(key, {} if key != engine.where[-1] else [])
    if not isinstance(answer, list):
        raise InvalidInput("", f"{name} answered something else than results")
    rows = [each for each in answer if isinstance(each, Mapping)]
    found = (_found(row, engine.excerpt) for row in rows)
    return [each for each in found if each.url][:most]


def _found(row: Mapping[str, Any], excerpt: str) -> Found:
    return Found(
        _line(row.get("title"), TITLE_CHARACTERS),
        _line(row.get("url"), URL_CHARACTERS),
        _line(row.get(excerpt), EXCERPT_CHARACTERS),
    )


def _line(value: object, most: int) -> str:
    text = value if isinstance(value, str) else ""
    plain = text[: most * 2].encode("utf-8", "replace").decode()
    return " ".join(plain.split())[:most]
