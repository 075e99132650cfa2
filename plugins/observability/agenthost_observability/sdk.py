"""The OpenTelemetry SDK, set up for one daemon and nothing global."""

from __future__ import annotations

from threading import Timer

from agenthost import __version__
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
)

UNNAMED = "unknown_service"
PATIENCE = 2.0


class Sending(TracerProvider):
    """A provider that sends to one exporter; the rest stands in ``OTEL_*``."""

    def __init__(self, exporter: SpanExporter) -> None:
        super().__init__(resource=resource(), shutdown_on_exit=False)
        self._exporter = exporter
        self.add_span_processor(BatchSpanProcessor(exporter))

    def shutdown(self) -> None:
        """Send what waits; a collector that is away is waited for only so long."""
        give_up = Timer(PATIENCE, self._exporter.shutdown)
        give_up.start()
        try:
            super().shutdown()
        finally:
            give_up.cancel()


def open_provider(exporter: str) -> TracerProvider:
    """Make a provider that sends to the exporter of this name."""
    return Sending(_exporter(exporter))


def resource() -> Resource:
    """Name the service: as the variables do, else ``agenthost``."""
    found = Resource.create({"service.version": __version__})
    if not str(found.attributes.get("service.name", UNNAMED)).startswith(UNNAMED):
        return found
    return found.merge(Resource({"service.name": "agenthost"}))


def _exporter(name: str) -> SpanExporter:
    if name == "console":
        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()
