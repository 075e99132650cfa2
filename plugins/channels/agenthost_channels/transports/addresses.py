"""Addresses of services that a secret is sent to."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def _encrypted(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError("the token would go in the clear; name an https address")
    return value.rstrip("/")


EncryptedUrl = Annotated[str, AfterValidator(_encrypted)]
"""An address that nobody on the way can listen to; without the slash at its end."""
