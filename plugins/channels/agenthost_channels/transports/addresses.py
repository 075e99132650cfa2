"""Addresses: of services that a secret is sent to, and of people."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

MAILBOX = re.compile(
    r"[^\s\x00-\x20\x7f<>()\[\]\\,;:@\"]+@[^\s\x00-\x20\x7f<>()\[\]\\,;:@\"]+"
)
"""Where mails go: a name and a host, as ``ada@example.org``."""
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def _encrypted(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError("the token would go in the clear; name an https address")
    return value.rstrip("/")


EncryptedUrl = Annotated[str, AfterValidator(_encrypted)]
"""An address that nobody on the way can listen to; without the slash at its end."""


def _mailbox(value: str) -> str:
    if not MAILBOX.fullmatch(value):
        raise ValueError("must be one address without a name: agent@example.org")
    return value


Mailbox = Annotated[str, AfterValidator(_mailbox)]
"""The address of one mailbox."""
