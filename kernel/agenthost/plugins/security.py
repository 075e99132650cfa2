"""The security systems on offer, and whether each proves itself."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

from ..errors import PluginError
from ..ports.backend import Backends
from .discovery import SystemState
from .guards import EVERY_EFFECT, Guards, SecuritySystem
from .loader import Plugins
from .points import KNOWN, GuardPoint

Offered = Mapping[str, Sequence[tuple[str, Any]]]


class SecuritySystems:
    """Runs self-tests; a system is active while its plugin has not failed.

    Args:
        plugins: Tells which plugins are healthy.
        offered: What plugins offer, by hook. What the systems of failed plugins guard
            is closed, and so are the points of failed plugins.
        backends: What is on offer for self-tests that prove a backend.

    Attributes:
        failed: The systems that are not active, by name.
    """

    failed: tuple[SystemState, ...] = ()

    def __init__(self, plugins: Plugins, offered: Offered, backends: Backends) -> None:
        self.guards = Guards(fail=self._fail)
        self._plugins = plugins
        self._offers = offered["security_system"]
        self._points = offered["register_guard_point"]
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
        """Every system by name; one that is off, or has failed, is inactive."""
        reasons = {state.key: state.reason for state in self._plugins.states()}
        healthy = self._plugins.healthy
        states = [
            SystemState(s.name, k, healthy(k) and not off, reasons[k] or off or vain)
            for k, s in self._offers
            for off, vain in [(s.off(), self._in_vain(s))]
        ]
        return sorted(states, key=lambda state: state.name)

    def warnings(self) -> list[str]:
        """What the operator is told: systems that have failed, points that refuse."""
        failed = [f"{s.name} is not active: {s.reason}" for s in self.failed]
        refused = self.guards.closed.values()
        vain = [
            f"{s.name} is {s.reason}" for s in self.states() if s.active and s.reason
        ]
        return [f"security: {told}" for told in (*failed, *refused, *vain)]

    def _there(self) -> Sequence[GuardPoint[Any]]:
        """The points of the kernel, and those of the plugins that have not failed."""
        return (*KNOWN, *(p for key, p in self._points if self._plugins.healthy(key)))

    def _in_vain(self, system: SecuritySystem) -> str | None:
        known = {EVERY_EFFECT, *map(str, self._there())}
        lost = ", ".join(sorted({*map(str, system.guards)} - known))
        return f"never asked at {lost}: no plugin offers it" if lost else None

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
            self.guards.compile(active, failed, self._there())
            self.failed = tuple(state for state in self.states() if not state.active)


def _test(system: SecuritySystem, backends: Backends) -> None:
    """Check that the functions are plain ones, then run the self-test."""
    for point, function in system.guards.items():
        if is_async(function):
            raise PluginError(f"its guard of {point} is async; it must be plain")
    kind = system.proves_on
    proven = () if kind is None else (backends.find(kind).open,)
    answer: object = system.self_test(*proven)  # type: ignore[func-returns-value]  # reason: a plugin may return anything
    if inspect.iscoroutine(answer):
        answer.close()
        raise PluginError("self_test is async; it must be a plain function")


def is_async(function: object) -> bool:
    """Tell an async function, an object that is called as one, and partials of them."""
    while isinstance(function, partial):
        function = function.func
    called = getattr(type(function), "__call__", None)  # noqa: B004 - its code is asked for
    return any(map(inspect.iscoroutinefunction, (function, called)))
