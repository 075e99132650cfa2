"""Which engines search the web."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from agenthost import Secret
from agenthost_toml.types import Names, Table
from pydantic import Field

EngineName = Literal["", "brave", "tavily", "perplexity", "searxng"]


class WebSearchSection(Table):
    """``[web.search]``: engines that ``web_search`` may ask."""

    read_at_use: ClassVar = True

    engine: EngineName = Field(
        "", description="Which one is asked; nothing is the first that is configured."
    )
    brave_api_key: Secret | None = Field(None, description="Key of Brave Search.")
    brave_url: str = Field(
        "https://api.search.brave.com", description="Where Brave Search is asked."
    )
    tavily_api_key: Secret | None = Field(None, description="Key of Tavily.")
    tavily_url: str = Field(
        "https://api.tavily.com", description="Where Tavily is asked."
    )
    perplexity_api_key: Secret | None = Field(None, description="Key of Perplexity.")
    perplexity_url: str = Field(
        "https://api.perplexity.ai", description="Where Perplexity is asked."
    )
    searxng_url: str = Field(
        "", description="Where a SearXNG of yours is asked; its JSON must be enabled."
    )
    allowed_hosts: Names = Field(
        (), description="Engines' hosts in private networks that may be reached."
    )
    timeout_secs: Annotated[float, Field(gt=0, le=100)] = Field(
        20.0, description="Seconds that an engine may take in all."
    )
