"""Say what a start would say of the configuration, without starting anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from agenthost import (
    Backends,
    Clock,
    ModelsBackend,
    Plugins,
    StoreBackend,
    SystemClock,
    Vault,
    VaultBackend,
    load_config,
)

from .checking import CheckedSettings, check

if TYPE_CHECKING:
    from agenthost import Config, Host


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A configuration that a daemon would start with.

    It is also what models are opened with, to judge the default one: they may use what
    a :class:`agenthost.Host` has by then, and call nothing of it yet.
    """

    config: Config
    settings: CheckedSettings
    environ: Mapping[str, str]
    vault: Vault
    registry: SimpleNamespace
    warnings: list[str]
    egress: None = None
    clock: Clock = field(default_factory=SystemClock)


async def rehearse(
    home: Path, environ: Mapping[str, str], text: str | None = None
) -> Rehearsal:
    """Read and check the configuration of a home as a start does.

    Args:
        home: The daemon's home.
        environ: The environment of the start.
        text: What is judged in place of the file.

    Raises:
        ConfigError: The daemon would not start.
    """
    loaded = load_config(home, environ, text)
    plugins = Plugins()
    warnings = [*await plugins.load(loaded.config)]
    offered = await plugins.collect("register_config")
    settings = await check(loaded.said, plugins, offered)
    warnings += settings.warnings
    backends = await _backends(plugins, loaded.config)
    made = Rehearsal(
        loaded.config,
        settings,
        environ,
        backends.find(VaultBackend).open(home, environ),
        await _registry(plugins),
        warnings,
    )
    try:
        models = backends.find(ModelsBackend).open(cast("Host", made))
        warnings += models.check_default()
    except AttributeError:
        # A backend of somebody else may use more of a daemon than there is here.
        warnings.append("default_model: what serves the models tells at the start")
    failed = [state for state in plugins.states() if state.reason]
    warnings += [f"{state.key} failed: {state.reason}" for state in failed]
    return made


async def _backends(plugins: Plugins, config: Config) -> Backends:
    """Find what serves the ports, and see that what is chosen is there."""
    offers = await plugins.collect("register_backend")
    backends = Backends(tuple(offer for _, offer in offers), config.backends)
    url = config.storage.url
    for kind in dict.fromkeys(type(offer) for offer in backends.offered):
        scheme = url.reveal().partition(":")[0] if url else "sqlite"
        backends.find(kind, scheme if kind is StoreBackend else None)
    return backends


async def _registry(plugins: Plugins) -> SimpleNamespace:
    offered: Any = await plugins.collect("register_dialect")
    dialects = {spec.name: spec for _, spec in offered}
    providers: Any = await plugins.collect("register_provider")
    naming = [(key, partial(spec.made, dialects)) for key, spec in providers]
    made: Any = await plugins.run_each("dialect", naming)
    by_slug = {spec.facts.slug: spec for _, spec in made}
    return SimpleNamespace(providers=by_slug, dialects=dialects)
