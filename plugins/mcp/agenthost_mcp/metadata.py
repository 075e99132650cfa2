"""Documents of OAuth, fetched through the one way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agenthost import AgentHostError, UpstreamUnreachable

from .addresses import is_secure, issuer_metadata

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 256 * 1024


class Unusable(UpstreamUnreachable):
    """A server of OAuth does not answer, or not as it should."""

    code = "oauth"


async def json_at(client: httpx.AsyncClient, url: str) -> Mapping[str, Any] | None:
    """Fetch a JSON object; None where there is none.

    Raises:
        Unusable: It cannot be fetched, or is none.
    """
    import httpx

    check(url)
    where = urlsplit(url).netloc
    try:
        answer = await client.get(url, headers={"Accept": "application/json"})
    except AgentHostError as error:
        raise Unusable(f"{where}: {error.message}") from error
    except httpx.HTTPError as error:
        raise Unusable(f"{where} does not answer: {type(error).__name__}") from error
    if answer.status_code != 200:
        return None
    try:
        found = answer.json()
    except (ValueError, RecursionError) as error:
        raise Unusable(f"{where} answers with no JSON") from error
    if not isinstance(found, dict):
        raise Unusable(f"{where} answers with no JSON object")
    return found


async def metadata_of(client: httpx.AsyncClient, issuer: str) -> Mapping[str, Any]:
    """Fetch what an issuer says of itself, and see that it is the issuer's.

    Raises:
        Unusable: There is nothing, or it speaks of another issuer.
    """
    for url in issuer_metadata(issuer):
        found = await json_at(client, url)
        if found is None:
            continue
        # RFC 8414, section 3.3: else one issuer could speak for another.
        if found.get("issuer") != issuer:
            said = str(found.get("issuer"))[:200]
            raise Unusable(f"the metadata of {issuer} is of another issuer: {said!a}")
        return found
    raise Unusable(f"{issuer} has no metadata of an authorization server")


def check(url: object) -> str:
    """Take an address that a document names.

    Raises:
        Unusable: It is none, or neither of https nor on this machine.
    """
    if isinstance(url, str) and is_secure(url):
        return url
    raise Unusable(f"{str(url)[:200]!a} is no address of https, so it is not asked")
