"""What the last ends of a home advise for this start."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from agenthost import PluginError, find_plugins

from .blame import owner
from .incidents import FILE, TIMES, Incidents
from .watchdog import main_thread_files

SAFE = (
    f"{TIMES} starts in ten minutes did not come to serve, so only agenthost's own "
    "plugins are loaded; agenthost stop and start, or the removal of "
    f"{FILE} from the home, bring the others back"
)
NEEDED = ("plugin", "security")

_log = logging.getLogger("agenthost.cli.caution")


@dataclass(frozen=True, slots=True)
class Caution:
    """Plugins not to load, by key with the reason, and warnings for the operator."""

    left_out: dict[str, str]
    warnings: list[str]


def look_back(incidents: Incidents, dump: Path) -> Caution:
    """Find what made the last ends of this home, and what to leave out for it."""
    _read_dump(incidents, dump)
    forced, safe = incidents.forced_ends(), incidents.failed_starts() >= TIMES
    caution = Caution({}, [SAFE] if safe else [])
    try:
        installed = find_plugins() if forced or safe else ()
    except PluginError:
        # Two of one name: the start itself tells of it.
        return caution
    for plugin in installed:
        times = forced[plugin.key]
        # Without some of our own there is no daemon at all.
        needed = plugin.first_party and plugin.key.partition(":")[0] in NEEDED
        if times >= TIMES and not needed:
            why = f"the daemon stood still in it and was ended {times} times"
            caution.left_out[plugin.key] = f"{why} within ten minutes"
            caution.warnings.append(f"{plugin.key} is left out: {why}")
        elif safe and not plugin.first_party:
            caution.left_out[plugin.key] = "a safe start, since others failed"
    return caution


def _read_dump(incidents: Incidents, dump: Path) -> None:
    """Note the forced end that left its stacks, and empty the file."""
    try:
        text = dump.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    if not text.strip():
        return
    places = incidents.last("serving").get("places", {})
    plugin = owner(places, main_thread_files(text))
    _log.error("the last end was forced, in %s:\n%s", plugin or "no plugin", text)
    # A stall that was noted before its end counts already.
    if not incidents.stands_still():
        incidents.note("forced", plugin=plugin)
    dump.write_text("")
