"""What a monitor sees of occasions: how many stand where, by the kind of source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenthost import Host

from .purses import DAY

Gauge = tuple[str, Mapping[str, str], float]
KINDS = ("schedule", "trigger")
OPEN = ("due", "running", "waiting")
ENDED = ("done", "failed", "missed", "refused", "cancelled")


async def gauges(host: Host) -> Sequence[Gauge]:
    """Count the occasions that are open, and those that ended within a day."""
    from .tables import COUNTED, COUNTED_OPEN

    since = {"since": host.clock.time() - DAY}
    still_open = await host.store.read(COUNTED_OPEN)
    ended = await host.store.read(COUNTED, since)
    counts = {
        (row["source"], row["state"]): row["number"] for row in (*still_open, *ended)
    }
    return [
        (name, {"source": source, "state": state}, counts.get((source, state), 0))
        for name, states in (("occasions", OPEN), ("occasions_ended_in_day", ENDED))
        for source in KINDS
        for state in states
    ]
