"""The kernel's own keys of ``config.toml``, their types and defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from agenthost_toml.types import (
    Address,
    Blankable,
    Label,
    Lower,
    Names,
    Table,
    blank_to_none,
    is_loopback,
    split_address,
    unwritten,
)
from pydantic import BeforeValidator, Field

from .secrets import Secret

MaybeSecret = Annotated[Secret | None, BeforeValidator(blank_to_none)]


class ModelChoice(Table):
    """``[default_model]``: what agents use that name no model of their own."""

    provider: Blankable = None
    """Slug of the provider; the daemon chooses one when there is none."""
    model: Blankable = None
    """Id or alias of the model; the provider's first when there is none."""


class PluginSelection(Table):
    """``[plugins]``: which plugins run: ``kind:slug``, a bare slug, globs of either."""

    set: Literal["default", "minimal", "api-only"] = "default"
    """Which of agenthost's own plugins there are to begin with."""
    enable: Names = ()
    """Those that run as well; plugins of others run only when they stand here."""
    disable: Names = ()
    """Those that do not run, whatever else is said."""


class StorageSection(Table):
    """``[storage]``: where the database is."""

    url: MaybeSecret = None
    """Address of the database; SQLite in the data folder when there is none."""


class Config(Table):
    """What ``config.toml`` and ``AGENTHOST_*`` can say to the kernel."""

    listen_addr: Address = "127.0.0.1:4200"
    """Where the API listens, as ``host:port``; also ``api_listen``. Port 0 lets the
    system choose."""
    api_key: MaybeSecret = None
    """What callers of the API must know; without one only this machine may call."""
    data_dir: Annotated[Path, Field(strict=False)] = Path("data")
    """Where the database and the workspaces are; relative to the home."""
    node: Label = "main"
    """What this daemon is called among those that share a database, each with a name of
    its own. Keep it: the turns that a crash leaves running are marked as interrupted by
    the next start of the same name."""
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"], Lower
    ] = "info"
    """The least that the log tells."""
    log_format: Annotated[Literal["text", "json"], Lower] = "text"
    """How the log is written: lines of text, or an object of JSON a line. Both carry
    the ids of request, turn and agent."""
    allow_unauthenticated_network: bool = False
    """Whether the API may be open to the network without a key."""
    default_model: ModelChoice = unwritten(ModelChoice)
    plugins: PluginSelection = unwritten(PluginSelection)
    storage: StorageSection = unwritten(StorageSection)
    backends: dict[str, str] = Field(default_factory=dict)
    """Which plugin's backend serves a port, by the port's name; needed where several
    offer one."""

    @property
    def host(self) -> str:
        """The host to listen on, an IPv6 address without brackets."""
        return split_address(self.listen_addr)[0]

    @property
    def port(self) -> int:
        """The port to listen on; 0 lets the system choose."""
        return split_address(self.listen_addr)[1]

    @property
    def listens_on_loopback(self) -> bool:
        """Whether only this machine can reach the API; an unknown name is not."""
        return is_loopback(self.host)
