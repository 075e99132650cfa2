"""Prometheus: counts what happens and serves it at ``/metrics``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module

from agenthost import Answer, Call, NotFound, Observer, Reply, RouteGroup, hookimpl

from .meters import Meters

routes = RouteGroup("prometheus")


@routes.get("/metrics", scope="metrics:read", cost=1, media="text/plain")
async def metrics(call: Call) -> Answer:
    """Show the metrics: Prometheus text, or OpenMetrics when ``Accept`` asks for it."""
    meters = call.host.observer(Meters)
    if meters is None:
        raise NotFound("observer", "prometheus")
    await asyncio.to_thread(import_module, f"{__package__}.exposition")
    from .exposition import expose
    from .gauges import gauges_of

    accept = call.headers.get("accept", "")
    told = await gauges_of(call.host)
    body, content_type = expose(call.host, meters, told, accept)
    return Reply(body, headers={"content-type": content_type})


@hookimpl
def register_observer() -> Iterable[Observer]:
    """Offer the counts."""
    yield Meters()


@hookimpl
def register_routes() -> Iterable[RouteGroup]:
    """Offer ``/metrics``."""
    yield routes
