"""``[[mcp_servers]]``: the servers whose tools agents may get."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from agenthost import JsonObject, Secret
from agenthost_toml.types import Names, Table
from pydantic import AfterValidator, ConfigDict, Field, RootModel, model_validator

from ..addresses import Address

# Not compiled here: a start without servers needs none of them.
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,47}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
_HEADER = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}: [ -~]+"
_URL = r"https?://[!-~]+"
MOST_SERVERS = 100


def _name(value: str) -> str:
    if not re.fullmatch(_NAME, value):
        raise ValueError("must be 1 to 48 of A-Z, a-z, 0-9, dot, dash and underscore")
    return value


def _variable(value: str) -> str:
    if not re.fullmatch(_VARIABLE, value):
        raise ValueError('must name a variable of the environment, such as "GH_TOKEN"')
    return value


def _url(value: str) -> str:
    if not re.fullmatch(_URL, value):
        raise ValueError('must be an address, such as "https://mcp.example.com/mcp"')
    return value


def _header(value: Secret) -> Secret:
    if not re.fullmatch(_HEADER, value.reveal()):
        raise ValueError('must be "Name: value"')
    return value


def _folder(value: str) -> str:
    if not value.startswith("/") or "\0" in value:
        raise ValueError('must be the whole path of a folder, such as "/srv/notes"')
    return value


ServerName = Annotated[str, AfterValidator(_name)]
ServerUrl = Annotated[str, AfterValidator(_url)]


class Transport(Table):
    """How a server is reached."""

    type: Literal["stdio", "http", "sse"] = Field(
        description="A program here, streamable HTTP, or the older HTTP with SSE."
    )
    command: str = Field("", description="The program, for stdio.")
    args: Names = Field((), description="Its arguments.")
    url: ServerUrl | None = Field(
        None, description="The address, for http and sse; it may be a local one."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.type == "stdio" and (not self.command or self.url):
            raise ValueError("stdio takes a command, and no url")
        if self.type != "stdio" and (not self.url or self.command or self.args):
            raise ValueError(f"{self.type} takes a url, and no command")
        return self


class OAuth(Table):
    """How a login at a server's authorization server is made."""

    issuer: Address | None = Field(
        None,
        description="Who must have issued the tokens; it may be a local one. Whoever "
        "the server names by default.",
    )
    client_id: str = Field(
        "",
        description="Who the daemon is there, where it does not register by itself.",
    )
    client_secret: Secret | None = Field(
        None, description="What proves it, where `client_id` has a secret."
    )
    scopes: Names = Field(
        (), description="What to ask for, instead of what the server wants."
    )
    redirect_uri: Address | None = Field(
        None,
        description="Where a browser finds `/oauth/callback` of the daemon, where that "
        "is not the address which it listens on.",
    )

    @model_validator(mode="after")
    def _whose(self) -> Self:
        if self.client_secret is not None and not self.client_id:
            raise ValueError("client_secret needs the client_id whose it is")
        return self


class McpServer(Table):
    """One of ``[[mcp_servers]]``."""

    name: ServerName = Field(description="Its tools are called `mcp_<name>_<tool>`.")
    transport: Transport = Field(description="How it is reached.")
    timeout_secs: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="A call that gives no sign of life for so long has failed.",
    )
    max_call_secs: float = Field(
        600.0, gt=0, le=86_400, description="A call ends then, whatever it reports."
    )
    env: tuple[Annotated[str, AfterValidator(_variable)], ...] = Field(
        (),
        strict=False,
        description="Variables of the daemon's environment that a program gets "
        "beside PATH, HOME, LANG, LC_ALL, TZ and TMPDIR.",
    )
    elicitation: bool = Field(
        default=False,
        description="Whether the server may have a person asked for values before it "
        "answers a call. All its calls count as repeatable then: one that was "
        "interrupted is made anew. A server older than revision 2026-07-28 is called "
        "by one turn at a time.",
    )
    sampling: bool = Field(
        default=False,
        description="Whether the server may have the model of the agent asked that "
        "calls it, with tools of the server. The agent pays. A server older than "
        "revision 2026-07-28 is called by one turn at a time.",
    )
    roots: tuple[Annotated[str, AfterValidator(_folder)], ...] = Field(
        (),
        strict=False,
        max_length=100,
        description="Folders that a server is told of when it asks for its roots. It "
        "is told of no others; being told gives it no right to read them.",
    )
    headers: tuple[Annotated[Secret, AfterValidator(_header)], ...] = Field(
        (), strict=False, description='Headers of each request, each "Name: value".'
    )
    oauth: OAuth | None = Field(
        None, description="How logins are made, where the server's word is not enough."
    )

    @property
    def told_roots(self) -> list[dict[str, str]]:
        """The folders as ``roots/list`` gives them."""
        return [
            {"uri": path.as_uri(), "name": path.name or "/"}
            for path in map(Path, self.roots)
        ]

    @property
    def capabilities(self) -> JsonObject:
        """What the server may ask for, as the protocol writes it."""
        able: dict[str, JsonObject] = {"roots": {}} if self.roots else {}
        if self.elicitation:
            able["elicitation"] = {"form": {}}
        if self.sampling:
            able["sampling"] = {"tools": {}}
        return able

    @property
    def logs_in(self) -> bool:
        """Whether a token comes from a login, and not from its headers."""
        named = {each.reveal().partition(":")[0].lower() for each in self.headers}
        return self.transport.type == "http" and "authorization" not in named

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.oauth is not None and not self.logs_in:
            raise ValueError(
                "oauth is for type http alone, without Authorization in headers"
            )
        return self


# With a parameter, pydantic would build a schema at each start: that takes 2 ms.
class McpServers(RootModel):  # type: ignore[type-arg]
    """``[[mcp_servers]]``; each name once."""

    model_config = ConfigDict(defer_build=True)
    read_at_use: ClassVar = True

    root: Annotated[tuple[McpServer, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _different(self) -> Self:
        counted = Counter(server.name for server in self.root)
        if twice := sorted(name for name, count in counted.items() if count > 1):
            raise ValueError(f"two servers are called {twice[0]!r}")
        if len(self.root) > MOST_SERVERS:
            raise ValueError(f"there are more than {MOST_SERVERS} servers")
        return self
