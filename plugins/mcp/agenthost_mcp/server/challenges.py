"""What a client is told that has no token, or one that is not good enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agenthost import (
    AgentHostError,
    Answer,
    Call,
    Host,
    Refused,
    Reply,
    RouteGroup,
    Unauthenticated,
)
from typing_extensions import TypedDict

from ..addresses import RESOURCE, resource_metadata
from .settings import McpSection

KIND = "mcp_token"
"""The kind of principal that comes with an issuer's token."""
USE, TOOLS, AGENTS = "mcp:use", "mcp:tools", "mcp:agents"
SCOPES = (USE, TOOLS, AGENTS)


class TokenRefused(Unauthenticated):
    """A token of the issuer's kind is no good."""

    code = "invalid_token"


class ProtectedResource(TypedDict):
    """What ``/mcp`` says of itself (RFC 9728)."""

    resource: str
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str]
    resource_name: str


def is_told(host: Host, path: str) -> bool:
    """Tell whether metadata stands at a path: where tokens of an issuer are taken."""
    told = host.settings(McpSection).issuer is not None
    return told and path in {RESOURCE, f"{RESOURCE}/mcp"}


def written(host: Host, error: AgentHostError) -> Any:
    """Write an error as JSON-RPC tells it, with what OAuth says of it as a header."""
    from . import rpc

    body, told = rpc.written(host, error), challenge(host, error)
    return Reply(body, error.status, {"WWW-Authenticate": told}) if told else body


def challenge(host: Host, error: AgentHostError) -> str:
    """Say which token is wanted (RFC 6750, RFC 9728); "" where none would help."""
    resource = host.settings(McpSection).resource
    if resource is None:
        return ""
    said = {"resource_metadata": resource_metadata(resource), "scope": USE}
    if isinstance(error, TokenRefused):
        said |= {"error": "invalid_token", "error_description": error.message}
    elif isinstance(error, Refused) and error.principal.kind == KIND:
        said |= {"error": "insufficient_scope", "error_description": error.message}
    elif not isinstance(error, Unauthenticated):
        return ""
    return "Bearer " + ", ".join(_quoted(said.items()))


def _quoted(said: Iterable[tuple[str, str]]) -> Iterable[str]:
    for name, value in said:
        # RFC 6750, section 3, has no quote, no backslash and ASCII alone.
        plain = value.translate({34: "'", 92: "/"}).encode("ascii", "replace").decode()
        yield f'{name}="{plain}"'


def group() -> RouteGroup:
    """The metadata, where an issuer is configured; otherwise there is no such path."""
    routes = RouteGroup("mcp.resource")
    facts: dict[str, Any] = {
        "scope": "mcp:read",
        "public": is_told,
        "answer": ProtectedResource,
        "direct": True,
    }

    @routes.get(f"{RESOURCE}/mcp", **facts)
    async def describe_mcp(call: Call) -> Answer:
        """Say whose tokens `/mcp` takes, and which scopes they may have."""
        return described(call.host)

    @routes.get(RESOURCE, **facts)
    async def describe_resource(call: Call) -> Answer:
        """Say the same to clients that look for it at the root."""
        return described(call.host)

    return routes


def described(host: Host) -> Answer:
    """What ``/mcp`` says of itself."""
    settings = host.settings(McpSection)
    return {
        "resource": settings.resource,
        "authorization_servers": [settings.issuer],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
        "resource_name": "agenthost",
    }
