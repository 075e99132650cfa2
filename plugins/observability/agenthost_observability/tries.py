"""A span for each try of a model call that took more than one."""

from __future__ import annotations

from collections.abc import Iterator
from time import time_ns

from agenthost import Activity
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer

from . import attributes
from .endings import OK

NANO = 1e9

Try = tuple[tuple[str, str], str, float, float]
"""The provider's slug and the model, the outcome, and when it began and ended."""


def tell(tracer: Tracer, around: Context, activity: Activity) -> None:
    """Make the spans; their moments are those of the daemon's monotonic clock."""
    tried = [*_tries(activity)]
    if len(tried) < 2:
        return
    offset = time_ns() - activity.host.clock.monotonic() * NANO
    for names, outcome, began, ended in tried:
        span = tracer.start_span(
            f"attempt {names[1]}",
            around,
            SpanKind.CLIENT,
            attributes.of_try(names, outcome),
            start_time=int(offset + began * NANO),
        )
        if outcome != OK:
            span.set_attribute("error.type", outcome)
            span.set_status(Status(StatusCode.ERROR, outcome))
        span.end(int(offset + ended * NANO))


def _tries(activity: Activity) -> Iterator[Try]:
    for failed in activity.failed:
        ended = failed.began + failed.seconds
        yield failed.target.names, failed.outcome, failed.began, ended
    answered, spent = activity.answered, activity.spent
    if answered is not None and spent is not None:
        now = activity.host.clock.monotonic()
        yield (spent.provider, spent.model), OK, answered.began, now
