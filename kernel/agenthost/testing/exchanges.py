"""The exchange of the installed way out, for calls without a daemon."""

from __future__ import annotations

from functools import cache

from ..config_model import PluginSelection
from ..plugins.discovery import find_plugins
from ..plugins.guards import Guards
from ..plugins.selection import select_plugins
from ..plugins.validation import hooks_of, known_hooks, offered
from ..ports.backend import Backends
from ..ports.backends import EgressBackend
from ..providers import Exchange


@cache
def installed_exchange() -> Exchange:
    """Find how model calls meet HTTP here: what serves the port EGRESS has it.

    Raises:
        ConfigError: No installed plugin serves the port.
    """
    found = find_plugins()
    enabled, _ = select_plugins(found, PluginSelection())
    specs, known = [], known_hooks()
    for plugin in found:
        hook = "register_backend"
        if plugin.key in enabled and hook in (hooks := hooks_of(plugin.entry, known)):
            specs += offered(hook, hooks[hook])
    egress = Backends(tuple(specs)).find(EgressBackend).open(Guards())
    return egress.exchange
