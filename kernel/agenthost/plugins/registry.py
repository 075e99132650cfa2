"""What the enabled plugins offer, compiled once into look-ups by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeVar

from agenthost_values.value_class import value_class

from ..ports.backend import Backends
from ..ports.front import Front
from .discovery import Status, SystemState
from .guards import SecuritySystem, stand_in
from .loader import Offered, Plugins
from .points import KNOWN
from .security import SecuritySystems
from .specs import ConfigSection
from .validation import OFFERS

T = TypeVar("T")

Sections = Sequence[tuple[str, ConfigSection]]


@value_class
class Registry:
    """Everything on offer; what a failed plugin offered is not in it.

    ``names_of`` tells, by a plugin's key, what it offers: each name after its kind.
    """

    security: SecuritySystems
    backends: Backends
    names_of: Mapping[str, Sequence[str]]
    _offers: Mapping[type, tuple[tuple[str, Any], ...]] = field(repr=False)

    def offered(self, kind: type[T]) -> tuple[tuple[str, T], ...]:
        """What is on offer of a type of the hook table, each with its plugin's key."""
        return self._offers.get(kind, ())

    def systems(self) -> Sequence[SystemState]:
        """Every security system, and whether it is active."""
        return self.security.states()

    async def prove(self) -> Sequence[SystemState]:
        """Have every security system prove itself now; what fails is off from then."""
        return await self.security.test()


async def compile_registry(
    plugins: Plugins,
    open_front: Callable[[Backends, Sections], Awaitable[Front]],
    chosen: Mapping[str, str],
) -> Registry:
    """Ask every plugin for everything and compile the answers.

    Names are taken in the plugins' order, first-party ones first; a plugin that
    offers a name another one has taken is marked failed, and all it offers is out.

    Args:
        plugins: The loaded plugins.
        open_front: Called once backends and sections of the configuration are known.
            The front's ``app`` is asked for only when some plugin's
            ``register_routes`` takes it.
        chosen: The backends that the configuration names, by port.

    Raises:
        ConfigError: What ``open_front`` needs is served by no plugin.
    """
    # Plugins that failed when all were asked before count as well: what they guarded
    # then stays closed.
    systems = await plugins.collect("security_system")
    systems += _unheard(plugins, plugins.implementing("security_system"))
    hooks = [hook for hook, row in OFFERS.items() if not row.asked]
    offered = {"security_system": systems, **await plugins.collect_all("hooks", hooks)}
    known = {spec.name: spec for _, spec in offered["register_dialect"]}
    naming = [(key, partial(s.made, known)) for key, s in offered["register_provider"]]
    offered["register_provider"] = await plugins.run_each("dialect", naming)
    standing = _settled(plugins, offered)
    front = await open_front(_backends(standing, chosen), standing["register_config"])
    routing = plugins.implementations("register_routes")
    app = front.app if any("app" in each.takes for _, each in routing) else None
    offered["register_routes"] = await plugins.collect("register_routes", app)
    backends = _backends(_settled(plugins, offered), chosen)
    # Also the systems of failed plugins: what they were to guard is closed.
    security = SecuritySystems(plugins, offered, backends)
    await security.test()
    standing = _settled(plugins, offered)
    return Registry(
        security=security,
        backends=_backends(standing, chosen),
        names_of=_names(standing),
        _offers={OFFERS[hook].type: tuple(all_) for hook, all_ in standing.items()},
    )


def _unheard(plugins: Plugins, guarding: set[str]) -> list[tuple[str, SecuritySystem]]:
    """Stand-ins for plugins that failed before they said what they guard."""
    return [
        (state.key, stand_in(state.slug))
        for state in plugins.states()
        if state.status is Status.FAILED
        and (state.key in guarding or state.key.startswith("security:"))
    ]


def _settled(plugins: Plugins, offered: Offered) -> Offered:
    """Settle the names, and keep the offers of the plugins that stand."""
    names = _names(offered)
    taken = {f"guard point {point}": "the kernel" for point in KNOWN}
    for key in plugins.in_order():
        own = names.get(key, [])
        if reason := _collision(key, own, taken):
            plugins.fail(key, reason)
        else:
            taken |= dict.fromkeys(own, key)
    return {
        hook: [(key, offer) for key, offer in offers if plugins.healthy(key)]
        for hook, offers in offered.items()
    }


def _names(offered: Offered) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for hook, offers in offered.items():
        for key, offer in offers:
            names.setdefault(key, []).extend(OFFERS[hook].names(offer))
    return names


def _collision(key: str, names: list[str], taken: Mapping[str, str]) -> str | None:
    for place, name in enumerate(names):
        if name in taken:
            return f"{key} offers {name}, which {taken[name]} has taken"
        if name in names[:place]:
            return f"{key} offers {name} twice"
    return None


def _backends(standing: Offered, chosen: Mapping[str, str]) -> Backends:
    return Backends(tuple(o for _, o in standing["register_backend"]), chosen)
