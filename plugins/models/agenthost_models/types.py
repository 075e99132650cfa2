"""What stands in the settings of models: addresses, money, shares."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field


def _http_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        port_ok = False
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_ok:
        raise ValueError('must be an address, such as "https://host.example/v1"')
    return value


HttpUrl = Annotated[str, AfterValidator(_http_url)]
Money = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
