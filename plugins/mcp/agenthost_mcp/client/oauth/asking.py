"""What an authorization server is asked for: an identity, and tokens."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

from agenthost import AgentHostError, Denied

from ...metadata import Unusable, check
from ..settings import OAuth
from .discovery import Found, is_scope
from .grant import Client, Grant

if TYPE_CHECKING:
    import httpx

BASIC, POST, NONE = "client_secret_basic", "client_secret_post", "none"
_TOKEN = re.compile(r"[!-~]{1,12000}")
_WORD = re.compile(r"[a-z_]{1,64}")


class LoginRefused(Denied):
    """An authorization server says no."""

    code = "login_refused"


async def identity(
    client: httpx.AsyncClient,
    found: Found,
    settings: OAuth,
    before: Grant | None,
    redirect: str,
) -> Client:
    """Be somebody to an authorization server: configured, known, or registered.

    Raises:
        Unusable: It takes no registrations, or answers as none should.
        LoginRefused: It refuses this one.
    """
    if settings.client_id:
        secret = settings.client_secret
        if secret is None:
            return Client(settings.client_id)
        method = POST if POST in found.methods and BASIC not in found.methods else BASIC
        return Client(settings.client_id, secret.reveal(), method)
    if before and (before.issuer, before.redirect) == (found.issuer, redirect):
        return before.bearer
    return await _registered(client, found, redirect)


async def tokens(
    client: httpx.AsyncClient, endpoint: str, who: Client, form: Mapping[str, str]
) -> dict[str, Any]:
    """Ask for tokens; what is returned has a good ``access_token``.

    Raises:
        LoginRefused: It says no.
        Unusable: It does not answer, or not as it should.
    """
    sent, headers = dict(form), {"Accept": "application/json"}
    if who.method == BASIC:
        both = f"{quote_plus(who.id)}:{quote_plus(who.secret)}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(both).decode()}"
    else:
        sent["client_id"] = who.id
    if who.method == POST:
        sent["client_secret"] = who.secret
    said = await _posted(client, endpoint, headers=headers, data=sent)
    token, kind = said.get("access_token"), said.get("token_type")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise Unusable(f"{_host(endpoint)} gives a token of another kind than Bearer")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Unusable(f"{_host(endpoint)} gives no token that a header could have")
    return said


def granted(grant: Grant, said: Mapping[str, Any], now: float) -> Grant:
    """Take what was given over into a grant; what it does not say stays as it was."""
    from dataclasses import replace

    lasts, again, scope = (
        said.get(name) for name in ("expires_in", "refresh_token", "scope")
    )
    timed = isinstance(lasts, int | float) and not isinstance(lasts, bool)
    return replace(
        grant,
        access=said["access_token"],
        refresh=again if isinstance(again, str) and again else grant.refresh,
        scope=str(scope) if is_scope(scope) else grant.scope,
        ends=now + min(max(float(lasts or 0), 0.0), 1e9) if timed else 0.0,
    )


async def _registered(client: httpx.AsyncClient, found: Found, redirect: str) -> Client:
    if not found.register:
        raise Unusable(
            f"{found.issuer} registers nobody by itself: register agenthost there "
            f"with the redirect {redirect}, and write client_id into its oauth"
        )
    method = next((m for m in (NONE, BASIC, POST) if m in found.methods), NONE)
    local = urlsplit(redirect).scheme == "http"
    asked = {
        "client_name": "agenthost",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native" if local else "web",
    }
    said = await _posted(client, found.register, json=asked)
    name, secret = said.get("client_id"), said.get("client_secret", "")
    method = said.get("token_endpoint_auth_method", method)
    if not isinstance(name, str) or not name or not isinstance(secret, str):
        raise Unusable(f"{_host(found.register)} registers nobody that has a client_id")
    if method not in {BASIC, POST, NONE} or (method != NONE and not secret):
        raise Unusable(f"{_host(found.register)} wants another proof than a secret")
    return Client(name, secret, method)


async def _posted(client: httpx.AsyncClient, url: str, **sent: Any) -> dict[str, Any]:
    import httpx

    where = _host(check(url))
    try:
        answer = await client.post(url, **sent)
        said = answer.json()
    except AgentHostError as error:
        raise Unusable(f"{where}: {error.message}") from error
    except httpx.HTTPError as error:
        raise Unusable(f"{where} does not answer: {type(error).__name__}") from error
    except (ValueError, RecursionError) as error:
        raise Unusable(f"{where} answers {answer.status_code} and no JSON") from error
    if not isinstance(said, dict):
        raise Unusable(f"{where} answers with no JSON object")
    if 400 <= answer.status_code < 500:
        # Its own words may repeat what it was sent.
        word = str(said.get("error"))
        word = word if _WORD.fullmatch(word) else "no error that is known"
        raise LoginRefused(f"{where} refuses: {word}")
    if not answer.is_success:
        raise Unusable(f"{where} answers {answer.status_code}")
    return said


def _host(url: str) -> str:
    return urlsplit(url).netloc
