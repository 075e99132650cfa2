"""From activities to spans: each a child of what caused it."""

from __future__ import annotations

from agenthost import Activity, ChatRequest, Observer, __version__
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from . import attributes, content, tries
from .endings import OK, STOPPED, type_of, word_of
from .outward import Outward

NOTHING_AROUND = Context()
CALLERS = TraceContextTextMapPropagator()


class Tracing(Observer):
    """The spans of one daemon that are open, by their activity's id."""

    def __init__(
        self,
        provider: TracerProvider,
        outward: Outward | None = None,
        *,
        content: bool = False,
    ) -> None:
        self.outward = outward
        self._provider = provider
        self._tracer = provider.get_tracer("agenthost", __version__)
        self._content = content
        self._open: dict[str, Span] = {}

    def started(self, activity: Activity) -> None:
        """Open its span under that of its cause, else under that of its request."""
        parent = self._open.get(activity.parent or "")
        self._open[activity.id] = self._tracer.start_span(
            attributes.name(activity),
            CALLERS.extract(activity.context.log_fields, NOTHING_AROUND)
            if parent is None
            else set_span_in_context(parent),
            SpanKind.CLIENT
            if isinstance(activity.subject, ChatRequest)
            else SpanKind.INTERNAL,
            attributes.at_start(activity),
        )

    def ended(self, activity: Activity) -> None:
        """Close its span with what came of it."""
        span = self._open.pop(activity.id, None)
        if span is None:
            return
        if span.is_recording():
            tries.tell(self._tracer, set_span_in_context(span), activity)
            self._finish(span, activity)
        span.end()

    def close(self) -> None:
        """Send what waits; blocks."""
        self._provider.shutdown()

    def _finish(self, span: Span, activity: Activity) -> None:
        span.set_attributes(attributes.at_end(activity))
        if self._content:
            span.set_attributes(content.of(activity))
        outcome = word_of(activity)
        span.set_attribute("agenthost.outcome", outcome)
        if outcome in {OK, STOPPED}:
            return
        kind = type_of(activity.error)
        span.set_attribute("error.type", kind)
        told = content.blotted(activity, str(activity.error)) if self._content else kind
        span.set_status(Status(StatusCode.ERROR, told))
