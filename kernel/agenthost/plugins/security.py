"""The security systems on offer, and whether each proves itself."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from threading import Lock

from ..errors import PluginError
from ..ports.backend import Backends
from .discovery import SystemState
from .guards import Guards, SecuritySystem
from .loader import Plugins

Offers = Sequence[tuple[str, SecuritySystem]]


class SecuritySystems:
    """Runs self-tests; a system is active while its plugin has not failed.

    Args:
        plugins: Tells which plugins are healthy.
        offers: The systems, each with its plugin's key. What those of failed plugins
            guard is closed.
        backends: What is on offer for self-tests that prove a backend.

    Attributes:
        failed: The systems that are not active, by name.
    """

    failed: tuple[SystemState, ...] = ()

    def __init__(self, plugins: Plugins, offers: Offers, backends: Backends) -> None:
        self.guards = Guards(fail=self._fail)
        self._plugins = plugins
        self._offers = offers
        self._backends = backends
        self._compiling = Lock()
        plugins.on_failure.append(self._compile)

    async def test(self) -> list[SystemState]:
        """Run every self-test; one that fails makes its plugin a failed one."""
        tests = [
            (key, partial(_test, system, self._backends))
            for key, system in self._offers
            if self._plugins.healthy(key)
        ]
        await self._plugins.run_each("self-test", tests)
        self._compile()
        return self.states()

    def states(self) -> list[SystemState]:
        """Every system by name; one whose plugin has failed is inactive."""
        reasons = {state.key: state.reason for state in self._plugins.states()}
        states = [
            SystemState(system.name, key, self._plugins.healthy(key), reasons[key])
            for key, system in self._offers
        ]
        return sorted(states, key=lambda state: state.name)

    def warnings(self) -> list[str]:
        """What the operator is told: systems that have failed, points that refuse."""
        failed = [f"{s.name} is not active: {s.reason}" for s in self.failed]
        refused = self.guards.closed.values()
        return [f"security: {told}" for told in (*failed, *refused)]

    def _fail(self, name: str, reason: str) -> None:
        for key, system in self._offers:
            if system.name == name and self._plugins.healthy(key):
                self._plugins.fail(key, reason)

    def _compile(self, *_: str) -> None:
        # Guards are asked in several threads, so two plugins may fail at once: the
        # lock makes the last compilation one that saw both. Who fails in its midst
        # stands in both lists, which closes its points.
        with self._compiling:
            healthy = self._plugins.healthy
            active = [system for key, system in self._offers if healthy(key)]
            failed = [system for key, system in self._offers if not healthy(key)]
            self.guards.compile(active, failed)
            self.failed = tuple(state for state in self.states() if not state.active)


def _test(system: SecuritySystem, backends: Backends) -> None:
    """Check that the functions are plain ones, then run the self-test."""
    for point, function in (*system.guards.items(), *system.observes.items()):
        if _is_async(function):
            raise PluginError(f"its guard of {point} is async; it must be plain")
    kind = system.proves_on
    proven = () if kind is None else (backends.find(kind).open,)
    answer: object = system.self_test(*proven)  # type: ignore[func-returns-value]  # reason: a plugin may return anything
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError("self_test is async; it must be a plain function")


def _is_async(function: object) -> bool:
    """Tell an async function, an object that is called as one, and partials of them."""
    while isinstance(function, partial):
        function = function.func
    called = getattr(type(function), "__call__", None)  # noqa: B004 - its code is asked for
    return any(map(inspect.iscoroutinefunction, (function, called)))
