"""An issuer's access tokens: signed, in time, by it and for us (RFC 9068)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agenthost_values.value_class import value_class

from .challenges import TokenRefused

if TYPE_CHECKING:
    from joserfc.jwk import Key

ALGORITHMS = (
    *("RS256", "RS384", "RS512"),
    *("PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512"),
    *("EdDSA", "Ed25519"),
)
"""Those of a public key: with no other can one who checks a token not make one."""
KINDS = {"", "jwt", "at+jwt", "application/at+jwt"}
KEY_TYPES = ("RSA", "EC", "OKP")
LEEWAY = 30
LONGEST = 8 * 1024
LONGEST_HEADER = 4 * 1024
LONGEST_SUBJECT = 255
LEAST_RSA_BITS = 2048
MOST_KEYS = 64


@value_class
class Head:
    """What a token says of its signature, believed by nobody yet."""

    algorithm: str
    key_id: str


@value_class
class Bearer:
    """Whom a good token lets in, to do what, until when."""

    subject: str
    scopes: frozenset[str]
    ends: float


def looks_like_one(token: str) -> bool:
    """Tell whether a token is a signed JWT by its form."""
    return token.count(".") == 2


def issuer_in(token: str) -> str:
    """Read who a token says has made it, "" when it says nothing."""
    from joserfc.util import urlsafe_b64decode

    try:
        claims = json.loads(urlsafe_b64decode(token.split(".")[1].encode()))
    except (ValueError, RecursionError):
        return ""
    said = claims.get("iss") if isinstance(claims, dict) else None
    return said if isinstance(said, str) else ""


def head_of(token: str) -> Head:
    """Read with which key a token says that it is signed.

    Raises:
        TokenRefused: It is too long, no JWT, or signed in no way that is taken.
    """
    from joserfc import jws
    from joserfc.errors import JoseError

    if len(token) > LONGEST:
        raise TokenRefused(f"the token is over {LONGEST // 1024} KiB")
    try:
        said = jws.extract_compact(token.encode(), registry=_registry()).headers()
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise TokenRefused("the token is no proper JWT") from error
    algorithm, key_id, kind = said.get("alg"), said.get("kid", ""), said.get("typ", "")
    if algorithm not in ALGORITHMS:
        raise TokenRefused(
            f"the token is signed with {str(algorithm)[:20]!a}; it must be one of "
            + ", ".join(ALGORITHMS)
        )
    if not isinstance(key_id, str) or not isinstance(kind, str):
        raise TokenRefused("the token's kid and typ must be text")
    if kind.lower() not in KINDS:
        raise TokenRefused(f"the token is a {kind[:40]!a} and no access token")
    return Head(str(algorithm), key_id)


def keys_in(document: Mapping[str, Any]) -> tuple[Key, ...]:
    """Take the keys of a JWK Set that tokens may be signed with."""
    listed = document.get("keys")
    if not isinstance(listed, list):
        return ()
    found = (_key(each) for each in listed[:MOST_KEYS] if isinstance(each, dict))
    return tuple(key for key in found if key is not None)


def chosen(keys: Iterable[Key], head: Head) -> Key | None:
    """Find the key of a token; one without ``kid`` may be of the only key that fits."""
    fit = [key for key in keys if _fits(key, head.algorithm)]
    if head.key_id:
        fit = [key for key in fit if key.get("kid") == head.key_id]
    return fit[0] if len(fit) == 1 else None


def verified(token: str, key: Key, issuer: str, resource: str, now: float) -> Bearer:
    """See that a token is good.

    Raises:
        TokenRefused: It is not.
    """
    from joserfc import jwt
    from joserfc.errors import ClaimError, JoseError

    try:
        claims = jwt.decode(token, key, registry=_registry()).claims
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise TokenRefused("the token's signature is wrong") from error
    registry = jwt.JWTClaimsRegistry(
        now=math.floor(now),
        leeway=LEEWAY,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": resource},
        exp={"essential": True},
        sub={"essential": True},
    )
    try:
        registry.validate(claims)
    except (ClaimError, ValueError, TypeError, OverflowError) as error:
        raise TokenRefused(_reason(error, issuer, resource)) from error
    return _bearer(claims)


def _bearer(claims: Mapping[str, Any]) -> Bearer:
    if "cnf" in claims:
        # It is good in the hands of one client alone, which nobody here can tell.
        raise TokenRefused("the token is bound to a key of its client; ask for a plain")
    subject = claims["sub"]
    if not subject.isprintable() or len(subject) > LONGEST_SUBJECT:
        raise TokenRefused("the token's sub must be printable and of 255 letters")
    said = claims.get("scope", claims.get("scp", ""))
    scopes = said.split() if isinstance(said, str) else said
    if not isinstance(scopes, list) or not all(isinstance(s, str) for s in scopes):
        raise TokenRefused("the token's scope must be a text")
    try:
        ends = float(claims["exp"])
    except OverflowError as error:
        raise TokenRefused("the token's exp is no time") from error
    return Bearer(subject, frozenset(scopes), ends)


def _reason(error: Exception, issuer: str, resource: str) -> str:
    from joserfc.errors import MissingClaimError

    known = not isinstance(error, MissingClaimError)
    claim = getattr(error, "claim", "") if known else ""
    told = {
        "iss": f"the token is of another issuer than {issuer}",
        "aud": f"the token is not meant for {resource}: ask for it with this resource",
        "exp": "the token has expired, or its exp is no time; get another",
        "nbf": "the token is not good yet",
        "iat": "the token is of the future",
    }
    missing = "the token lacks one of iss, aud, exp and sub, or one has a wrong form"
    return told.get(claim, missing)


def _registry() -> Any:
    from joserfc.jws import JWSRegistry

    # Headers that nobody needs here are let be; critical ones are refused all the same.
    registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
    registry.max_header_length = LONGEST_HEADER
    return registry


def _key(said: dict[str, Any]) -> Key | None:
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key

    if said.get("kty") not in KEY_TYPES or said.get("use", "sig") != "sig":
        return None
    try:
        # Before it is imported, which warns of such keys.
        if said["kty"] == "RSA" and len(said["n"]) * 6 < LEAST_RSA_BITS:
            return None
        key = import_key(said)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        # An issuer may have keys of kinds that are not known here.
        return None
    return None if key.is_private else key


def _fits(key: Key, algorithm: str) -> bool:
    own = key.get("alg")
    if own is not None and own != algorithm:
        return False
    kind = {"R": "RSA", "P": "RSA"}.get(algorithm[0], "")
    kind = kind or ("EC" if algorithm.startswith("ES") else "OKP")
    curve = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}.get(algorithm)
    curve = "Ed25519" if kind == "OKP" and algorithm == "Ed25519" else curve
    return key.key_type == kind and (curve is None or key.get("crv") == curve)
