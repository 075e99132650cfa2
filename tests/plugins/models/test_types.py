"""Types of the settings of models."""

from __future__ import annotations

import pytest
from agenthost_models.types import HttpUrl
from pydantic import TypeAdapter, ValidationError

URLS = TypeAdapter(HttpUrl)


@pytest.mark.parametrize(
    "url", ["a.example", "ftp://a.example", "http://", "http://a:0"]
)
def test_only_addresses_of_the_web_are_urls(url: str) -> None:
    with pytest.raises(ValidationError, match="must be an address"):
        URLS.validate_python(url)
