"""Load the enabled plugins and keep each one's failure to itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

from ..config_model import Config
from .calls import Outcome, guarded
from .discovery import Entry, Found, find_plugins
from .selection import select
from .validation import Implementation, hooks_of, items_of

_log = logging.getLogger(__name__)
T = TypeVar("T")

BOOT_BUDGET = 10.0


class Status(StrEnum):
    """What became of a plugin."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class PluginState:
    """A plugin as ``/api/health/detail`` and ``agenthost plugins list`` show it."""

    key: str
    distribution: str
    version: str
    status: Status
    reason: str | None = None


class Plugins:
    """The plugins of one daemon.

    Args:
        entries: Entry points to use instead of the installed ones.
        budget: Seconds that an import or a boot hook may take.
    """

    def __init__(
        self, entries: Iterable[Entry] | None = None, *, budget: float = BOOT_BUDGET
    ) -> None:
        self._entries = None if entries is None else tuple(entries)
        self._budget = budget
        self._states: dict[str, PluginState] = {}
        self._hooks: dict[str, Mapping[str, Implementation]] = {}

    async def load(self, config: Config) -> tuple[str, ...]:
        """Find, select and import; return warnings about ``[plugins]``.

        Raises:
            PluginError: Two distributions offer the same key.
        """
        found = find_plugins(self._entries)
        selection = select(found, config.plugins)
        for plugin in found:
            enabled = plugin.key in selection.enabled
            status = Status.ENABLED if enabled else Status.DISABLED
            self._states[plugin.key] = PluginState(
                plugin.key, plugin.distribution, plugin.version, status
            )
            if enabled:
                await self._import(plugin)
        return selection.warnings

    async def _import(self, plugin: Found) -> None:
        def load() -> dict[str, Implementation]:
            return hooks_of(plugin.entry.load())

        outcome = await self.run(plugin.key, "import", load)
        if outcome.reason is None and outcome.value is not None:
            self._hooks[plugin.key] = outcome.value

    def states(self) -> list[PluginState]:
        """Every plugin that is installed, by key."""
        return sorted(self._states.values(), key=lambda state: state.key)

    def in_order(self) -> list[PluginState]:
        """Every plugin in the order of its say: first-party ones first, then by key."""
        return list(self._states.values())

    def healthy(self, key: str) -> bool:
        """Tell whether the plugin is enabled and has not failed."""
        state = self._states.get(key)
        return state is not None and state.status is Status.ENABLED

    def fail(self, key: str, reason: str) -> None:
        """Mark a plugin failed: none of its hooks is called again."""
        state = self._states.get(key)
        if state is None or state.status is Status.FAILED:
            return
        self._states[key] = replace(state, status=Status.FAILED, reason=reason)
        _log.error(
            "plugin %s (%s %s) failed: %s",
            key,
            state.distribution,
            state.version,
            reason,
        )

    def implementations(self, hook: str) -> list[tuple[str, Implementation]]:
        """The healthy plugins that implement the hook, first-party ones first."""
        return [
            (key, hooks[hook])
            for key, hooks in self._hooks.items()
            if hook in hooks and self.healthy(key)
        ]

    async def collect(self, hook: str, *arguments: object) -> list[tuple[str, Any]]:
        """Ask each plugin on its own, and pair what it offers with its key.

        A plugin that raises, blocks, or returns a wrong type or a coroutine is marked
        failed and offers nothing; the others' answers are kept.
        """
        offered: list[tuple[str, Any]] = []
        for key, implementation in self.implementations(hook):
            ask = partial(_ask, hook, implementation, arguments)
            outcome = await self.run(key, hook, ask)
            offered += [(key, item) for item in outcome.value or ()]
        return offered

    async def run(self, key: str, what: str, call: Callable[[], T]) -> Outcome[T]:
        """Run a plugin's code off the loop; its failure marks the plugin failed."""
        outcome = await guarded(f"{key} {what}", call, self._budget)
        if outcome.reason is not None:
            self.fail(key, outcome.reason)
        return outcome


def _ask(
    hook: str, implementation: Implementation, arguments: tuple[object, ...]
) -> list[Any]:
    return items_of(hook, implementation(*arguments))
