"""Say what a start would say of the configuration, without starting anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

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
    from agenthost import Config, Host, Observers

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Offers:
    """What plugins offer to the models."""

    all_: Sequence[tuple[str, object]]

    def offered(self, kind: type[T]) -> list[tuple[str, T]]:
        return [(key, offer) for key, offer in self.all_ if isinstance(offer, kind)]


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
    registry: _Offers
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
        await _offers(plugins),
        warnings,
    )
    try:
        # Nobody observes: nothing is asked.
        host, nobody = cast("Host", made), cast("Observers", None)
        models = backends.find(ModelsBackend).open(host, nobody)
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


async def _offers(plugins: Plugins) -> _Offers:
    dialects: Any = await plugins.collect("register_dialect")
    known = {spec.name: spec for _, spec in dialects}
    providers: Any = await plugins.collect("register_provider")
    naming = [(key, partial(spec.made, known)) for key, spec in providers]
    return _Offers([*dialects, *await plugins.run_each("dialect", naming)])
