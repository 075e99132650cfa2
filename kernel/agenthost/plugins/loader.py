"""Load the enabled plugins and keep each one's failure to itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ..config_model import Config
from ..ports.store import NOTHING
from .calls import Implementation, guarded_each
from .charges import Charges
from .discovery import Entry, PluginState, Status, find_plugins, installed_entries
from .selection import select_plugins
from .validation import hooks_of, known_hooks, offered

_log = logging.getLogger(__name__)
T = TypeVar("T")

BOOT_BUDGET = 30.0
"""Wall time: on a busy machine the import of a library alone may take ten seconds."""
Reasons = Mapping[str, str]
"""Why, by the plugin's key."""
Offered = dict[str, list[tuple[str, Any]]]
"""What plugins offer, by hook, each after its plugin's key."""


class Plugins:
    """The plugins of one daemon.

    ``failed`` says whether one has failed; ``charges`` tells what they cost.

    Args:
        entries: Entry points to use instead of the installed ones.
        budget: Seconds that an import or a boot hook may take.

    Attributes:
        on_failure: Called with key and reason after each plugin that fails, in the
            thread it failed in.
    """

    def __init__(
        self, entries: Iterable[Entry] | None = None, *, budget: float = BOOT_BUDGET
    ) -> None:
        self._entries = tuple(installed_entries() if entries is None else entries)
        self._budget = budget
        self._states: dict[str, PluginState] = {}
        self._hooks: Mapping[str, Mapping[str, Implementation]] = {}
        self.on_failure: list[Callable[[str, str], None]] = []
        self.failed = False
        self.charges = Charges()

    async def load(self, config: Config, without: Reasons = NOTHING) -> tuple[str, ...]:
        """Find, select and import; return warnings about ``[plugins]``.

        What it goes ``without``, with the reason, counts as failed and is not imported.

        Raises:
            PluginError: Two distributions offer the same key.
        """
        found = find_plugins(self._entries)
        enabled, warnings = select_plugins(found, config.plugins)
        self._states = {plugin.key: plugin for plugin in found}
        for key in enabled:
            self._states[key] = replace(self._states[key], status=Status.ENABLED)
            if key in without:
                self.fail(key, f"left out: {without[key]}")
        known = known_hooks()
        entries = [(key, self._states[key].entry) for key in self.in_order()]
        imports = [(key, partial(hooks_of, entry, known)) for key, entry in entries]
        self._hooks = dict(await self.run_each("import", imports))
        return warnings

    def _charged(self, key: str, call: Callable[[], T]) -> T:
        with self.charges.timed(key):
            return call()

    def states(self) -> list[PluginState]:
        """Every plugin that is installed, by key."""
        return sorted(self._states.values(), key=lambda state: state.key)

    def in_order(self) -> list[str]:
        """The keys of all healthy plugins: first-party ones first, then by key."""
        return [key for key in self._states if self.healthy(key)]

    def healthy(self, key: str) -> bool:
        """Tell whether the plugin is enabled and has not failed."""
        state = self._states.get(key)
        return state is not None and state.status is Status.ENABLED

    def fail(self, key: str, reason: str) -> None:
        """Mark a plugin failed: none of its hooks is called again."""
        old = self._states.get(key)
        if old is None or old.status is Status.FAILED:
            return
        self._states[key] = replace(old, status=Status.FAILED, reason=reason)
        self.failed = True
        _log.error(
            "plugin %s (%s %s) failed: %s", key, old.distribution, old.version, reason
        )
        for told in self.on_failure:
            told(key, reason)

    def implementations(self, hook: str) -> list[tuple[str, Implementation]]:
        """The healthy plugins that implement the hook, first-party ones first."""
        healthy = ((key, self._hooks[key]) for key in self.in_order())
        return [(key, own[hook]) for key, own in healthy if hook in own]

    def implementing(self, hook: str) -> set[str]:
        """The keys of all plugins with that hook, failed ones too."""
        return {key for key, hooks in self._hooks.items() if hook in hooks}

    async def collect(self, hook: str, *arguments: object) -> list[tuple[str, Any]]:
        """Ask each plugin on its own, and pair what it offers with its key.

        A plugin that raises, blocks, or returns a wrong type or a coroutine is marked
        failed and offers nothing; the others' answers are kept.
        """
        return (await self.collect_all(hook, [hook], *arguments))[hook]

    async def collect_all(
        self, what: str, hooks: Sequence[str], *given: object
    ) -> Offered:
        """Ask each plugin for all these hooks in one go, else as ``collect`` does.

        A thread for each hook would take as long as all that they do.
        """

        def ask(own: Mapping[str, Implementation]) -> list[tuple[str, list[Any]]]:
            return [(h, offered(h, own[h], *given)) for h in hooks if h in own]

        answers: Offered = {hook: [] for hook in hooks}
        asked = [(key, partial(ask, self._hooks[key])) for key in self.in_order()]
        for key, own in await self.run_each(what, asked):
            for hook, items in own:
                answers[hook] += [(key, item) for item in items]
        return answers

    async def run_each(
        self, what: str, calls: Sequence[tuple[str, Callable[[], T]]]
    ) -> list[tuple[str, T]]:
        """Run plugins' code off the loop; a failure marks its plugin failed.

        Returns:
            The values of those that did not fail, each with its plugin's key.
        """
        named = [(f"{k} {what}", partial(self._charged, k, call)) for k, call in calls]
        values = []
        outcomes = await guarded_each(named, self._budget)
        for (key, _), (value, reason) in zip(calls, outcomes, strict=True):
            if reason is not None:
                self.fail(key, reason)
            elif value is not None:
                values.append((key, value))
        return values
