"""Sign a request for AWS with access keys: Signature Version 4.

Source: AWS documentation, "Create a signed AWS API request".
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
KEYS = re.compile(r"([A-Z0-9]{16,128}):([^:\s]+)(?::(\S+))?")
REGION = re.compile(r"\b([a-z]{2,}(?:-[a-z]+)+-\d+)\b")
DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """A pair of access keys and, for temporary ones, their session token."""

    id: str
    secret: str
    session: str | None = None


def read_keys(key: str) -> AccessKeys | None:
    """Read ``<access key id>:<secret access key>[:<session token>]``.

    None for anything else: a bearer token, unless it holds a colon.
    """
    found = KEYS.fullmatch(key)
    return AccessKeys(*found.groups()) if found else None


def region_of(host: str) -> str:
    """Read the region out of a host name such as ``bedrock.eu-west-1.example``."""
    found = REGION.search(host)
    return found[1] if found else DEFAULT_REGION


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A request to sign: its path may hold escapes, which are escaped once more."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


def sign(
    request: Unsigned, keys: AccessKeys, service: str, now: datetime
) -> dict[str, str]:
    """Make the headers of the signed request: the given ones and those of AWS."""
    parts = urlsplit(request.url)
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {**request.headers, "X-Amz-Date": moment}
    if keys.session:
        headers["X-Amz-Security-Token"] = keys.session
    signed = {name.lower(): value.strip() for name, value in headers.items()}
    signed["host"] = parts.netloc
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        [
            request.method,
            quote(parts.path or "/", safe="/-_.~"),
            parts.query,
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    scope = f"{moment[:8]}/{region_of(parts.netloc)}/{service}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join([ALGORITHM, moment, scope, hashed])
    signature = hmac.new(_key(keys, scope), text.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = (
        f"{ALGORITHM} Credential={keys.id}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return headers


def _key(keys: AccessKeys, scope: str) -> bytes:
    """Derive the key of a day, region and service."""
    key = f"AWS4{keys.secret}".encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    return key
