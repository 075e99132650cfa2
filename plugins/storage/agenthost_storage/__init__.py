"""What is kept on this machine: the database, agents' files and secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from agenthost import (
    Backend,
    CommandSpec,
    ConfigError,
    ConfigSection,
    Files,
    FilesBackend,
    Guards,
    Host,
    SchemaSpec,
    ServiceSpec,
    Store,
    StoreBackend,
    Vault,
    VaultBackend,
    hookimpl,
)

_SCHEME = "sqlite://"


async def open_store(url: str, schemas: Sequence[SchemaSpec]) -> Store:
    """Open the SQLite database of a URL such as ``sqlite:////var/lib/agenthost.db``.

    Raises:
        ConfigError: The URL names no absolute path, or the file cannot be used.
        AgentHostError: As ``SqliteStore.open`` tells.
    """
    from .sqlite import SqliteStore

    return await SqliteStore.open(_path(url), schemas)


def count_tables(url: str, owned: Callable[[str], bool]) -> Mapping[str, int]:
    """Count the rows of the tables whose names are owned, while nobody has it open."""
    from .sqlite.purge import tables

    return tables(_path(url), owned)


def drop_tables(url: str, owned: Callable[[str], bool]) -> None:
    """Drop the tables whose names are owned, while nobody has it open.

    Raises:
        Conflict: A table of somebody else refers to one of them.
    """
    from .sqlite.purge import drop

    drop(_path(url), owned)


def _path(url: str) -> Path:
    path = Path(url.removeprefix(_SCHEME).removeprefix("/"))
    if not url.startswith(_SCHEME) or not path.is_absolute():
        raise ConfigError(
            "storage.url: SQLite needs the absolute path of a file, such as "
            "sqlite:////var/lib/agenthost/agenthost.db"
        )
    return path


def open_files(root: Path, guards: Guards) -> Files:
    """Keep the agents' workspaces in folders below a root."""
    from .files import LocalFiles

    return LocalFiles(root, guards)


def open_vault(home: Path, environ: Mapping[str, str]) -> Vault:
    """Keep secrets in ``vault.enc`` of a home; nothing is read or made yet."""
    from .vault import FileVault, vault_key

    path = home / "vault.enc"
    return FileVault(path, partial(vault_key, home, path, environ))


async def _limit_files(host: Host) -> None:
    """Tell the workspaces what they may hold; the daemon opened them itself."""
    from .files import LocalFiles
    from .settings import FilesSection

    if isinstance(host.files, LocalFiles):
        host.files.room.most = host.settings(FilesSection).workspace_bytes


async def _nothing(_: Host) -> None:
    """The daemon closes what it has opened itself."""


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Set limits, and offer to import what the first write needs."""
    warm_up = partial(import_module, ".sqlite.compiled", __package__)
    yield ServiceSpec("storage", _limit_files, _nothing, warm_up)


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read what a workspace may hold."""
    from .settings import FilesSection

    yield ConfigSection("files", FilesSection)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the database, the files and the vault."""
    yield StoreBackend("sqlite", open_store, count_tables, drop_tables)
    yield FilesBackend("local", open_files)
    yield VaultBackend("file", open_vault)


@hookimpl
def register_command() -> Iterable[CommandSpec]:
    """Offer ``agenthost backup``, ``restore`` and ``check``."""
    from .archive.commands import backup, check, restore

    yield from map(CommandSpec, (backup, restore, check))
