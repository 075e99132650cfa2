"""What ``/mcp`` offers, and whose tokens it takes."""

from __future__ import annotations

from typing import Annotated, Self

from agenthost_toml.types import Names, Table
from pydantic import AfterValidator, Field, model_validator

from ..addresses import is_secure


def _secure(value: str) -> str:
    if not is_secure(value):
        raise ValueError(
            "must be an address of https, or of http on this machine, without #fragment"
        )
    return value


Address = Annotated[str, AfterValidator(_secure)]


class McpSection(Table):
    """``[mcp]``: what clients of `/mcp` may do, and whose tokens they may show."""

    tools: Names = Field(
        (),
        description="Patterns of tools that they may call besides those that only "
        "read.",
    )
    network: Names = Field(
        (), description="Hosts that the tools which they call may reach."
    )
    issuer: Address | None = Field(
        None,
        description="The authorization server whose access tokens `/mcp` takes beside "
        "keys, exactly as its metadata writes it; it may be a local one.",
    )
    resource: Address | None = Field(
        None,
        description="The address of `/mcp` as clients write it, such as "
        '"https://agents.example.com/mcp": tokens must be meant for it. `issuer` '
        "needs it.",
    )

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.issuer is None) != (self.resource is None):
            missing = "resource" if self.resource is None else "issuer"
            raise ValueError(f"issuer and resource go together; {missing} is missing")
        return self
