"""The OpenTelemetry SDK, set up for one daemon and nothing global."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from agenthost import __version__
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
)
from requests import Session

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
        with _bounded(self._exporter.shutdown):
            super().shutdown()


class SendingMeters(MeterProvider):
    """The same for metrics."""

    def __init__(self, exporter: MetricExporter) -> None:
        reader = PeriodicExportingMetricReader(exporter)
        super().__init__([reader], resource=resource(), shutdown_on_exit=False)
        self._exporter = exporter

    def shutdown(self, timeout_millis: float = PATIENCE * 1_000) -> None:
        """Send what waits; a collector that is away is waited for only so long."""
        with _bounded(self._exporter.shutdown):
            super().shutdown(timeout_millis)


def open_provider(exporter: str, session: Session) -> TracerProvider:
    """Make a provider that sends to the exporter of this name, by the session."""
    return Sending(_exporter(exporter, session))


def open_meters(exporter: str, session: Session) -> MeterProvider:
    """Make one that sends metrics, likewise."""
    return SendingMeters(_metric_exporter(exporter, session))


def resource() -> Resource:
    """Name the service: as the variables do, else ``agenthost``."""
    found = Resource.create({"service.version": __version__})
    if not str(found.attributes.get("service.name", UNNAMED)).startswith(UNNAMED):
        return found
    return found.merge(Resource({"service.name": "agenthost"}))


def _exporter(name: str, session: Session) -> SpanExporter:
    if name == "console":
        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(session=session)


def _metric_exporter(name: str, session: Session) -> MetricExporter:
    if name == "console":
        return ConsoleMetricExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
        OTLPMetricExporter,
    )

    return OTLPMetricExporter(session=session)


@contextmanager
def _bounded(give_up: Callable[[], None]) -> Iterator[None]:
    """Give up on what the block sends once it has taken too long."""
    timer = Timer(PATIENCE, give_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
