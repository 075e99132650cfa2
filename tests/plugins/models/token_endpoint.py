"""A token endpoint that refuses what it should, on a loopback port."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from agenthost.testing.simulators import OpenAIChatWire, ProviderSimulator, Reply
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SECRET = "s3cret~of.the_application"
CLIENT = {
    "grant_type": "client_credentials",
    "client_id": "app-1",
    "client_secret": SECRET,
    "scope": "https://cognitiveservices.azure.com/.default",
}
ROBOT = "robot@acme.iam.gserviceaccount.com"
CLOUD = "https://www.googleapis.com/auth/cloud-platform"


class TokenEndpoint(ProviderSimulator):
    """Gives ``token-1``, ``token-2`` and so on for right forms.

    Attributes:
        answers: What is answered first, whatever is asked.
        forms: What came.
        account: The private key whose assertions are taken.
    """

    def __init__(self, account: RSAPrivateKey | None = None) -> None:
        super().__init__(OpenAIChatWire())
        self.account = account
        self.answers: deque[Reply] = deque()
        self.forms: list[dict[str, str]] = []
        self.paths: list[str] = []

    def reply(self, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer with a token, or with what OAuth calls the mistake."""
        form = dict(parse_qsl(body.decode(), strict_parsing=True))
        self.forms.append(form)
        self.paths.append(path)
        if self.answers:
            return self.answers.popleft()
        wrong = self.wrong(form)
        if headers["content-type"] != "application/x-www-form-urlencoded":
            wrong = "invalid_request"
        if wrong:
            told = {"error": wrong, "error_description": f"no: {form}"}
            return Reply((json.dumps(told).encode(),), 401)
        return given(f"token-{len(self.forms)}")

    def wrong(self, form: Mapping[str, str]) -> str:
        """Say what is wrong with a form."""
        if self.account is None:
            return "" if form == CLIENT else "invalid_client"
        if form.keys() != {"grant_type", "assertion"}:
            return "invalid_request"
        if form["grant_type"] != JWT_BEARER:
            return "unsupported_grant_type"
        head, claims = verified(form["assertion"], self.account)
        right = (
            head == {"alg": "RS256", "typ": "JWT", "kid": "kid-1"}
            and claims["iss"] == ROBOT
            and claims["scope"] == CLOUD
            and claims["aud"].startswith(self.base_url.removesuffix("/v1"))
            and 0 < claims["exp"] - claims["iat"] <= 3_600
        )
        return "" if right else "invalid_grant"


def given(token: object, life: object = 3_599) -> Reply:
    """Write the answer that brings a token."""
    told = {"access_token": token, "token_type": "Bearer", "expires_in": life}
    return Reply((json.dumps(told).encode(),), headers={"Content-Type": "text/json"})


def verified(
    assertion: str, account: RSAPrivateKey
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a JWT whose signature is right; one that is not has no claims."""
    signed, _, signature = assertion.rpartition(".")
    head, claims = (json.loads(_read(part)) for part in signed.split("."))
    try:
        account.public_key().verify(
            _read(signature), signed.encode(), PKCS1v15(), SHA256()
        )
    except InvalidSignature:
        return {}, {}
    return head, claims


def _read(segment: str) -> bytes:
    assert not {"=", "+", "/"} & set(segment), "base64url without padding"
    return urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def new_account() -> RSAPrivateKey:
    """Make a key pair."""
    return generate_private_key(65_537, 2_048)


def account_file(account: Any, **changed: object) -> str:
    """Write the JSON file of a service account."""
    pem = account.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    ).decode()
    told = {
        "type": "service_account",
        "project_id": "acme",
        "private_key_id": "kid-1",
        "private_key": pem,
        "client_email": ROBOT,
        "token_uri": "http://169.254.169.254/never",
    }
    return json.dumps({**told, **changed})
