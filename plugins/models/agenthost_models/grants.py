"""Two ways to a token: Entra's client credentials, and a service account of Google.

Sources: Microsoft identity platform, "OAuth 2.0 client credentials flow"; Google,
"Using OAuth 2.0 for server to server applications"; RFC 7515, RFC 7523.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLOUD = "https://www.googleapis.com/auth/cloud-platform"
LIFE = 3_600
"""Seconds that an assertion is good for, the most that Google allows."""
NO_ACCOUNT = "the key is no service account's: give the JSON file's content, whole"


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """An application of Entra; the key is its client secret."""

    url: str
    client_id: str
    scope: str

    def form(self, key: str, now: float) -> Mapping[str, str]:
        """Write the form; what time it is does not matter."""
        del now
        return {
            "grant_type": "client_credentials",
            "client_id": self.client_id,
            "client_secret": key,
            "scope": self.scope,
        }


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account; the key is the content of its JSON file.

    Where the token endpoint is, the configuration says, not the file: whoever may set
    a key must not choose where the daemon sends what it signs.
    """

    url: str

    def form(self, key: str, now: float) -> Mapping[str, str]:
        """Sign an assertion.

        Raises:
            ValueError: The key is no service account's.
        """
        account = _account(key)
        header = {"alg": "RS256", "typ": "JWT"}
        if isinstance(account.get("private_key_id"), str):
            header["kid"] = account["private_key_id"]
        claims = {
            "iss": account["client_email"],
            "scope": CLOUD,
            "aud": self.url,
            "iat": int(now),
            "exp": int(now) + LIFE,
        }
        signed = f"{_segment(header)}.{_segment(claims)}"
        signature = _sign(account["private_key"], signed.encode())
        return {"grant_type": JWT_BEARER, "assertion": f"{signed}.{signature}"}


def _account(key: str) -> dict[str, Any]:
    try:
        account = json.loads(key)
    except (ValueError, RecursionError):
        raise ValueError(NO_ACCOUNT) from None
    needed = ("client_email", "private_key")
    if not isinstance(account, dict) or not all(
        isinstance(account.get(name), str) for name in needed
    ):
        raise ValueError(NO_ACCOUNT)
    return account


def _sign(pem: str, data: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    return _base64(_rsa(pem).sign(data, PKCS1v15(), SHA256()))


def _rsa(pem: str) -> RSAPrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(NO_ACCOUNT) from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError(NO_ACCOUNT)  # noqa: TRY004 - what the key is, not its type
    return key


def _segment(value: Mapping[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
