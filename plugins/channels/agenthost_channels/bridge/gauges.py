"""What a monitor sees of channels: which are connected, and what waits or was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agenthost import Host

if TYPE_CHECKING:
    from .bridge import Bridge

Gauge = tuple[str, Mapping[str, str], float]
DAY = 86_400.0
STATES = ("waiting", "sending", "delivered", "failed", "unknown")


async def gauges(host: Host, bridge: Bridge) -> Sequence[Gauge]:
    """Tell how each channel stands that was loaded; of others there is nothing."""
    if not bridge.accounts:
        return []
    from .tables import COUNTED_IN, COUNTED_OUT

    since = {"since": host.clock.time() - DAY}
    open_ = {row["channel"]: row["number"] for row in await host.store.read(COUNTED_IN)}
    sent = {
        (row["channel"], row["state"]): row["number"]
        for row in await host.store.read(COUNTED_OUT, since)
    }
    told: list[Gauge] = []
    for name, account in sorted(bridge.accounts.items()):
        up = float(account.line.up.is_set())
        told += [
            ("channel_connected", {"channel": name}, up),
            ("channel_unanswered", {"channel": name}, open_.get(name, 0)),
        ]
        told += [
            (
                "channel_messages_in_day",
                {"channel": name, "state": state},
                sent.get((name, state), 0),
            )
            for state in STATES
        ]
    return told
