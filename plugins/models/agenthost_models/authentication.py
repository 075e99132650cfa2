"""What ``[providers.<slug>] auth`` exchanges the key for, and where that is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenthost import Host

if TYPE_CHECKING:
    from .settings import ProviderSection, Vertex
    from .tokens import Grant, Tokens

VERTEX_DIALECT = "gemini-generateContent"


def takes_token(section: ProviderSection) -> bool:
    """Tell whether a provider's key becomes a token, or is shown itself."""
    return section.entra is not None or section.vertex is not None


def _grant(section: ProviderSection) -> Grant | None:
    from .grants import ClientCredentials, ServiceAccount

    entra, vertex = section.entra, section.vertex
    if entra is not None:
        url = f"{entra.authority.rstrip('/')}/{entra.tenant}/oauth2/v2.0/token"
        return ClientCredentials(url, entra.client_id, entra.scope)
    return ServiceAccount(vertex.token_url) if vertex is not None else None


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
    if not any(map(takes_token, sections.values())):
        return {}
    from .tokens import Tokens

    grants = ((slug, _grant(section)) for slug, section in sections.items())
    return {slug: Tokens(host, slug, grant) for slug, grant in grants if grant}
