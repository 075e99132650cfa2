"""Settings of ``[channels.xmpp]``."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

_PART = r"[^@/\s\x00-\x1f\x7f\"&'<>:]"
# Counted by their length: numbers in a pattern take megabytes to be compiled.
BareJid = Annotated[str, Field(pattern=rf"^{_PART}+@{_PART}+$", max_length=454)]
Nick = Annotated[str, Field(pattern=r"^[^\s\x00-\x1f\x7f/@]+$", max_length=60)]


class Settings(BaseModel, defer_build=True):
    """Settings of ``[channels.xmpp]``."""

    jid: BareJid = Field(description="Address of the account, name@domain")
    server: str = Field("", description="Name of the server; the domain where empty")
    port: int = Field(
        0, ge=0, le=65535, description="5222 where nothing is said, 5223 for direct TLS"
    )
    tls: str = Field(
        "starttls",
        pattern="^(starttls|direct|none)$",
        description="How it is encrypted; none is for a server on this machine",
    )
    ca_file: str = Field("", description="Authority of a server of your own, as PEM")
    plain: bool = Field(
        default=False,
        description="Show the password to a server that knows no SCRAM; over TLS alone",
    )
    files_at: str = Field(
        "",
        pattern=r"^(https?://[^\s?#@]+/)?$",
        description="Where a server of your own keeps files, https://HOST/PATH/; of"
        " that host nothing else is fetched",
    )
    resource: Nick = Field(
        "agenthost", description="Of our session; a daemon has its own"
    )
    rooms: list[BareJid] = Field([], max_length=100, description="Rooms to join")
    nick: Nick = Field("agenthost", description="Our name in rooms")

    @model_validator(mode="after")
    def _never_in_the_open(self) -> Settings:
        if self.tls == "none" and not _here(self.host):
            raise ValueError(
                f'tls = "none" would send everything in the open to {self.host};'
                ' only a server on this machine is spoken to so: use "starttls",'
                " and ca_file for an authority of your own"
            )
        return self

    @property
    def domain(self) -> str:
        """The domain of the account, which the certificate is for."""
        return self.jid.rpartition("@")[2]

    @property
    def host(self) -> str:
        """Where the server is."""
        return self.server or self.domain

    @property
    def at(self) -> int:
        """The port of the server."""
        return self.port or (5223 if self.tls == "direct" else 5222)


def _here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
