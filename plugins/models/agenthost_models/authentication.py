"""What ``[providers.<slug>] auth`` exchanges the key for, and where that is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenthost import Host

from .grants import ClientCredentials, ServiceAccount
from .tokens import Grant, Tokens

if TYPE_CHECKING:
    from .settings import Entra, ProviderSection, Vertex

VERTEX_DIALECT = "gemini-generateContent"


def grant_of(section: ProviderSection) -> Grant | None:
    """Find how a provider's key becomes a token; None where it is shown itself."""
    if section.entra is not None:
        return _entra(section.entra)
    if section.vertex is not None:
        return ServiceAccount(section.vertex.token_url)
    return None


def _entra(entra: Entra) -> Grant:
    url = f"{entra.authority.rstrip('/')}/{entra.tenant}/oauth2/v2.0/token"
    return ClientCredentials(url, entra.client_id, entra.scope)


def vertex_address(vertex: Vertex) -> str:
    """Where Google's own models are served in a project and region."""
    region = vertex.region
    host = f"{region}-aiplatform.googleapis.com"
    if region == "global":
        host = "aiplatform.googleapis.com"
    elif region in {"us", "eu"}:
        host = f"aiplatform.{region}.rep.googleapis.com"
    place = f"projects/{vertex.project}/locations/{region}"
    return f"https://{host}/v1beta1/{place}/publishers/google"


def address_of(section: ProviderSection) -> str | None:
    """Give the address that a section says, or that follows from what it says."""
    if section.base_url is None and section.vertex is not None:
        return vertex_address(section.vertex)
    return section.base_url


def tokens_of(host: Host, sections: Mapping[str, ProviderSection]) -> dict[str, Tokens]:
    """Make what fetches tokens, for the providers that take some."""
    grants = ((slug, grant_of(section)) for slug, section in sections.items())
    return {slug: Tokens(host, slug, grant) for slug, grant in grants if grant}
