"""Who gives tokens for a server, and how it is asked (RFC 9728, RFC 8414)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agenthost_values.value_class import value_class

from ...addresses import RESOURCE, is_secure, resource_metadata
from ...metadata import Unusable, check, json_at, metadata_of

if TYPE_CHECKING:
    import httpx

LONGEST_SCOPE = 2_000
OFFLINE = "offline_access"
_PAIR = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_BEARER = re.compile(r"(?:^|,)\s*Bearer\s+(.*)", re.IGNORECASE | re.DOTALL)
_SCOPES = re.compile(r"[!#-\[\]-~]+( [!#-\[\]-~]+)*")


@value_class
class Challenge:
    """What a server says with 401 or 403 of the token that it wants."""

    metadata: str = ""
    scope: str = ""
    error: str = ""


@value_class
class Found:
    """An authorization server, and the resource that its tokens are to be for."""

    resource: str
    issuer: str
    authorize: str
    token: str
    register: str
    methods: tuple[str, ...]
    scope: str
    offline: bool
    names_itself: bool


def challenge_of(headers: Iterable[str]) -> Challenge:
    """Read the ``WWW-Authenticate`` of an answer."""
    for header in headers:
        if match := _BEARER.search(header[:8_000]):
            pairs = {
                name.lower(): re.sub(r"\\(.)", r"\1", quoted) or plain
                for name, quoted, plain in _PAIR.findall(match[1])
            }
            scope = pairs.get("scope", "")
            return Challenge(
                pairs.get("resource_metadata", ""),
                scope if is_scope(scope) else "",
                pairs.get("error", ""),
            )
    return Challenge()


def is_scope(text: object) -> bool:
    """Tell whether a text is a list of scopes (RFC 6749, section 3.3)."""
    good = isinstance(text, str) and len(text) <= LONGEST_SCOPE
    return good and _SCOPES.fullmatch(str(text)) is not None


async def discovered(
    client: httpx.AsyncClient, url: str, challenge: Challenge, issuer: str | None
) -> Found:
    """Find out who gives tokens for a server.

    Args:
        client: What asks.
        url: The server's address.
        challenge: What the server has said.
        issuer: Who it must be; whoever the server names by default.

    Raises:
        Unusable: Nobody can be found who is to be trusted with it.
    """
    if not is_secure(url):
        raise Unusable(f"{url} is not https, so that no token is sent there")
    said = await _resource(client, url, challenge)
    resource = str(said.get("resource"))
    if not covers(resource, url):
        raise Unusable(
            f"its metadata is of another resource, {resource[:200]!a}: a token for it "
            f"is none for {url}"
        )
    named = _issuers(said)
    chosen = issuer or named[0]
    if chosen not in named:
        raise Unusable(f"it takes no tokens of {chosen}, but of {named[0][:200]!a}")
    metadata = await metadata_of(client, check(chosen))
    return _found(resource, chosen, metadata, _scope_of(said))


def covers(resource: str, url: str) -> bool:
    """Tell whether an address is a resource, or below it."""
    if not is_secure(resource):
        return False
    theirs, ours = urlsplit(resource), urlsplit(url)
    if (theirs.scheme, theirs.netloc.lower()) != (ours.scheme, ours.netloc.lower()):
        return False
    if theirs.query and theirs.query != ours.query:
        return False
    base = theirs.path.rstrip("/")
    return ours.path == theirs.path or f"{ours.path}/".startswith(f"{base}/")


async def _resource(
    client: httpx.AsyncClient, url: str, challenge: Challenge
) -> Mapping[str, Any]:
    origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
    places = [challenge.metadata] if challenge.metadata else []
    places += [] if places else [resource_metadata(url), origin + RESOURCE]
    for place in dict.fromkeys(places):
        if found := await json_at(client, place):
            return found
    if challenge.metadata:
        raise Unusable("it names metadata of its resource, and there is none")
    # Before 2025-06-18 a server was its own authorization server.
    return {"resource": url, "authorization_servers": [origin]}


def _issuers(said: Mapping[str, Any]) -> list[str]:
    named = said.get("authorization_servers")
    texts = (
        [each for each in named if isinstance(each, str)]
        if isinstance(named, list)
        else []
    )
    if not texts:
        raise Unusable("its metadata names no authorization server")
    return texts


def _found(resource: str, issuer: str, said: Mapping[str, Any], scope: str) -> Found:
    ways = said.get("code_challenge_methods_supported")
    if not isinstance(ways, list) or "S256" not in ways:
        raise Unusable(f"{issuer} does not say that it checks PKCE with S256")
    methods = said.get("token_endpoint_auth_methods_supported")
    named = methods if isinstance(methods, list) else ["client_secret_basic"]
    register, scopes = said.get("registration_endpoint"), said.get("scopes_supported")
    return Found(
        resource,
        issuer,
        check(said.get("authorization_endpoint")),
        check(said.get("token_endpoint")),
        check(register) if register else "",
        tuple(str(each) for each in named),
        scope,
        isinstance(scopes, list) and OFFLINE in scopes,
        said.get("authorization_response_iss_parameter_supported") is True,
    )


def _scope_of(said: Mapping[str, Any]) -> str:
    scopes = said.get("scopes_supported")
    joined = " ".join(map(str, scopes)) if isinstance(scopes, list) else ""
    return joined if is_scope(joined) else ""
