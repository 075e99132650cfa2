"""Signatures of Standard Webhooks.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping

from agenthost import Unauthenticated

ID, TIME, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
WINDOW_SECONDS = 300
MOST_SIGNATURES = 8
_ID = re.compile(r"[\x21-\x7e]{1,128}")
_TIME = re.compile(r"\d{1,12}")


def key_of(secret: str) -> bytes:
    """Read a secret: base64 after ``whsec_``.

    Raises:
        Unauthenticated: It is not, or is shorter than 16 bytes.
    """
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < 16:
        raise Unauthenticated(
            "the webhook's secret must be whsec_ and base64 of 24 random bytes;"
            " set WEBHOOK_SECRET anew"
        )
    return key


def signed(secret: str, name: str, seconds: int, body: bytes) -> dict[str, str]:
    """Give the headers that sign a body."""
    return {ID: name, TIME: str(seconds), SIGNATURE: _sign(secret, name, seconds, body)}


def verified(
    secret: str, headers: Mapping[str, str], body: bytes, seconds: float
) -> str:
    """Give the id of a request that is signed and of now.

    Raises:
        Unauthenticated: It is not signed with this secret, or not within five minutes.
    """
    name, time = headers.get(ID, ""), headers.get(TIME, "")
    if not _ID.fullmatch(name) or not _TIME.fullmatch(time):
        raise Unauthenticated(f"a webhook needs the headers {ID} and {TIME}")
    expected = _sign(secret, name, int(time), body).encode()
    offered = headers.get(SIGNATURE, "").encode("utf-8", "surrogatepass")
    found = [
        hmac.compare_digest(each, expected)
        for each in offered.split(b" ", MOST_SIGNATURES)[:MOST_SIGNATURES]
    ]
    if not any(found):
        raise Unauthenticated("the webhook's signature is wrong")
    if abs(seconds - int(time)) > WINDOW_SECONDS:
        raise Unauthenticated("the webhook was signed more than five minutes from now")
    return name


def _sign(secret: str, name: str, seconds: int, body: bytes) -> str:
    content = f"{name}.{seconds}.".encode() + body
    digest = hmac.new(key_of(secret), content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"
