"""The security systems on offer, and whether each proves itself."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import partial

from ..errors import PluginError
from ..ports import Backends
from .calls import guarded
from .guards import Guards, SecuritySystem
from .loader import Plugins

TEST_BUDGET = 10.0
NO_BACKENDS = Backends()


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
        backends: What is on offer for self-tests that prove a backend.
        budget: Seconds that a self-test may take.
    """

    def __init__(
        self,
        plugins: Plugins,
        backends: Backends = NO_BACKENDS,
        *,
        budget: float = TEST_BUDGET,
    ) -> None:
        self.guards = Guards()
        self._plugins = plugins
        self._backends = backends
        self._budget = budget
        self._offers: list[tuple[str, SecuritySystem]] = []
        self._states: dict[str, SystemState] = {}

    async def take(self, plugin: str, system: SecuritySystem) -> None:
        """Add a system and test it at once."""
        self._offers.append((plugin, system))
        self._states[system.name] = await self._tested(plugin, system)
        self._compile()

    async def test(self) -> list[SystemState]:
        """Run every self-test again and use the guards of those that pass."""
        for plugin, system in self._offers:
            self._states[system.name] = await self._tested(plugin, system)
        self._compile()
        return self.states()

    def states(self) -> list[SystemState]:
        """Every system by name; one whose plugin has failed is inactive."""
        return [self._now(self._states[name]) for name in sorted(self._states)]

    def _now(self, state: SystemState) -> SystemState:
        if state.active and not self._plugins.healthy(state.plugin):
            return replace(state, active=False, reason="its plugin has failed")
        return state

    async def _tested(self, plugin: str, system: SecuritySystem) -> SystemState:
        test = partial(_test, system, self._backends)
        outcome = await guarded(f"{system.name} self-test", test, self._budget)
        passed = outcome.reason is None
        return SystemState(system.name, plugin, passed, outcome.reason)

    def _compile(self) -> None:
        active = {state.name for state in self.states() if state.active}
        self.guards.compile(s for _, s in self._offers if s.name in active)


def _test(system: SecuritySystem, backends: Backends) -> None:
    port = system.proves_on
    proven = () if port is None else (backends.find(port).open,)
    answer: object = system.self_test(*proven)  # type: ignore[func-returns-value]  # reason: a plugin may return anything
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError("self_test is async; it must be a plain function")
