"""What is kept on this machine: the database, agents' files and secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from agenthost import (
    Backend,
    ConfigError,
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

    path = Path(url.removeprefix(_SCHEME).removeprefix("/"))
    if not url.startswith(_SCHEME) or not path.is_absolute():
        raise ConfigError(
            "storage.url: SQLite needs the absolute path of a file, such as "
            "sqlite:////var/lib/agenthost/agenthost.db"
        )
    return await SqliteStore.open(path, schemas)


def open_files(root: Path, guards: Guards) -> Files:
    """Keep the agents' workspaces in folders below a root."""
    from .files import LocalFiles

    return LocalFiles(root, guards)


def open_vault(home: Path, environ: Mapping[str, str]) -> Vault:
    """Keep secrets in ``vault.enc`` of a home; nothing is read or made yet."""
    from .vault import FileVault, vault_key

    path = home / "vault.enc"
    return FileVault(path, partial(vault_key, home, path, environ))


async def _nothing(_: Host) -> None:
    """The daemon opens and closes its store itself."""


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Offer to import what the first write needs."""
    warm_up = partial(import_module, ".sqlite.compiled", __package__)
    yield ServiceSpec("storage", _nothing, _nothing, warm_up)


@hookimpl
def register_backend() -> Iterable[Backend]:
    """Offer the database, the files and the vault."""
    yield StoreBackend("sqlite", open_store)
    yield FilesBackend("local", open_files)
    yield VaultBackend("file", open_vault)
