"""The security systems on offer, and whether each proves itself."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import PluginError
from ..ports import Backends
from .calls import guarded_each
from .guards import Guards, SecuritySystem
from .loader import Plugins

TEST_BUDGET = 10.0


@dataclass(frozen=True, slots=True)
class SystemState:
    """A security system as ``/api/security`` shows it."""

    name: str
    plugin: str
    active: bool
    reason: str | None = None


class SecuritySystems:
    """Runs self-tests; guards of a system that fails its own are not used.

    Args:
        plugins: Tells which plugins are healthy.
        offers: The systems, each with its plugin's key.
        backends: What is on offer for self-tests that prove a backend.
    """

    def __init__(
        self,
        plugins: Plugins,
        offers: Sequence[tuple[str, SecuritySystem]],
        backends: Backends,
    ) -> None:
        self.guards = Guards()
        self._plugins = plugins
        self._offers = offers
        self._backends = backends
        self._failures: dict[str, str | None] = {}

    async def test(self) -> list[SystemState]:
        """Run every self-test and use the guards of those that pass."""
        systems = [system for _, system in self._offers]
        tests = [
            (f"{system.name} self-test", partial(_test, system, self._backends))
            for system in systems
        ]
        outcomes = zip(systems, await guarded_each(tests, TEST_BUDGET), strict=True)
        self._failures = {system.name: outcome.reason for system, outcome in outcomes}
        states = self.states()
        active = {state.name for state in states if state.active}
        self.guards.compile(system for system in systems if system.name in active)
        return states

    def states(self) -> list[SystemState]:
        """Every system by name; one whose plugin has failed is inactive."""
        states = [self._state(plugin, system.name) for plugin, system in self._offers]
        return sorted(states, key=lambda state: state.name)

    def _state(self, plugin: str, name: str) -> SystemState:
        reason = self._failures[name]
        if reason is None and not self._plugins.healthy(plugin):
            reason = "its plugin has failed"
        return SystemState(name, plugin, reason is None, reason)


def _test(system: SecuritySystem, backends: Backends) -> None:
    port = system.proves_on
    proven = () if port is None else (backends.find(port).open,)
    answer: object = system.self_test(*proven)  # type: ignore[func-returns-value]  # reason: a plugin may return anything
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError("self_test is async; it must be a plain function")
