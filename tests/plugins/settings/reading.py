"""Read a configuration with all installed plugins, without a daemon."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from agenthost import Plugins, load_config
from agenthost.plugins.discovery import PluginState, installed_entries
from agenthost.testing.daemons import provided
from agenthost_settings.checking import CheckedSettings, check
from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


class Read:
    """Settings, and what became of the plugins."""

    def __init__(self, settings: CheckedSettings, plugins: Plugins) -> None:
        self._settings = settings
        self.warnings = settings.warnings
        self.claims = settings.claims
        self.plugins: Mapping[str, PluginState] = {s.key: s for s in plugins.states()}

    def __call__(self, model: type[M]) -> M:
        return self._settings(model)


async def read(
    home: Path,
    text: str | None,
    *plugins: ModuleType,
    mode: int = 0o600,
    **environ: str,
) -> Read:
    """Read a text as ``config.toml``, None as no file, with these plugins besides."""
    if text is not None:
        file = home / "config.toml"
        file.write_text(text, encoding="utf-8")
        os.chmod(file, mode)
    more = provided(plugins)
    enabled = {"AGENTHOST_PLUGINS__ENABLE": ",".join(f"plugin:{e.name}" for e in more)}
    loaded = load_config(home, {**enabled, **environ})
    known = Plugins([*installed_entries(), *more])
    await known.load(loaded.config)
    offered = await known.collect("register_config")
    return Read(await check(loaded.said, known, offered), known)
