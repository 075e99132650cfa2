"""What a monitor sees of channels: which are connected, and what waits or was lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agenthost import Host

if TYPE_CHECKING:
    from .bridge import Bridge

Gauge = tuple[str, Mapping[str, str], float]
DAY = 86_400.0
STATES = ("waiting", "sending", "delivered", "failed", "unknown")


async def counted(host: Host) -> Mapping[str, Mapping[str, int]]:
    """Count by channel what waits for an answer, and what became of a day's messages.

    What there is none of is not there.
    """
    from .tables import COUNTED_IN, COUNTED_OUT

    since = {"since": host.clock.time() - DAY}
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in await host.store.read(COUNTED_IN):
        found[row["channel"]]["unanswered"] = row["number"]
    for row in await host.store.read(COUNTED_OUT, since):
        found[row["channel"]][row["state"]] = row["number"]
    return found


async def gauges(host: Host, bridge: Bridge) -> Sequence[Gauge]:
    """Tell how each channel stands that was loaded; of others there is nothing."""
    if not bridge.accounts:
        return []
    counts = await counted(host)
    told: list[Gauge] = []
    for name, account in sorted(bridge.accounts.items()):
        up, of = float(account.line.up.is_set()), counts.get(name, {})
        told += [
            ("channel_connected", {"channel": name}, up),
            ("channel_unanswered", {"channel": name}, of.get("unanswered", 0)),
        ]
        told += [
            (
                "channel_messages_in_day",
                {"channel": name, "state": state},
                of.get(state, 0),
            )
            for state in STATES
        ]
    return told
