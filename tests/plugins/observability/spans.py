"""Spans as the SDK's own exporter for tests holds them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agenthost import Observer, hookimpl
from agenthost_observability.tracing import Tracing
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Spans:
    """A plugin that traces into memory, and questions about what it caught."""

    def __init__(self, *, content: bool = False) -> None:
        self._exporter = InMemorySpanExporter()
        self._provider = TracerProvider(shutdown_on_exit=False)
        self._provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._content = content

    def plugin(self) -> SimpleNamespace:
        def register_observer() -> list[Observer]:
            return [Tracing(self._provider, content=self._content)]

        return SimpleNamespace(
            __name__="tracing", register_observer=hookimpl(register_observer)
        )

    def all(self) -> list[ReadableSpan]:
        """Every span that ended, by the time of its start."""
        ended = self._exporter.get_finished_spans()
        return sorted(ended, key=lambda span: span.start_time or 0)

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.all() if span.name == name]
        return span

    def tree(self) -> list[str]:
        """Each span's name, two spaces further in than its parent's."""
        by_id = {span.context.span_id: span for span in self.all()}

        def depth(span: ReadableSpan) -> int:
            if span.parent is None:
                return 0
            return 1 + depth(by_id[span.parent.span_id])

        return ["  " * depth(span) + span.name for span in self.all()]

    def text(self) -> str:
        """Everything that would be sent."""
        return "\n".join(span.to_json() for span in self.all())


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
