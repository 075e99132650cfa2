"""OpenTelemetry: one tree of spans a turn, sent where ``OTEL_*`` variables say.

Without those variables nothing is imported, kept or sent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from agenthost import Host, Observer, PluginError, ServiceSpec, hookimpl

if TYPE_CHECKING:
    from .tracing import Tracing

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
HTTP = "http/protobuf"


def exporter_of(environ: Mapping[str, str]) -> str | None:
    """Tell which exporter the variables ask for; None when they ask for none.

    Raises:
        PluginError: They ask for something that is not offered.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    addressed = any(environ.get(name, "").strip() for name in ENDPOINTS)
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    exporter = named or ("otlp" if addressed else "none")
    if exporter not in {"otlp", "console", "none"}:
        raise PluginError(
            f"OTEL_TRACES_EXPORTER: {exporter!r} is not offered; use otlp or console"
        )
    protocol = next((environ[p] for p in PROTOCOLS if environ.get(p)), HTTP)
    if exporter == "otlp" and protocol != HTTP:
        raise PluginError(f"{PROTOCOLS[1]}: {protocol!r} is not offered; use {HTTP}")
    return None if exporter == "none" else exporter


def captures_content(environ: Mapping[str, str]) -> bool:
    """Tell whether the operator wants what was said in the spans."""
    return environ.get(CAPTURE, "").strip().lower() == "true"


@hookimpl
def register_observer() -> Iterable[Observer]:
    """Offer the spans, when there is somewhere to send them."""
    exporter = exporter_of(os.environ)
    if exporter is None:
        return
    try:
        from .sdk import open_provider
        from .tracing import Tracing
    except ImportError as error:
        raise PluginError(
            "needs the OpenTelemetry SDK; pip install 'agenthost[opentelemetry]'"
        ) from error
    provider = open_provider(exporter)
    yield Tracing(provider, content=captures_content(os.environ))


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Send what is left when the daemon stops."""
    if exporter_of(os.environ) is not None:
        yield ServiceSpec("opentelemetry", start=_start, stop=_stop)


async def _start(host: Host) -> None:
    """Spans begin with the first turn; there is nothing to wait for."""


async def _stop(host: Host) -> None:
    from .tracing import Tracing

    tracing: Tracing | None = host.observer(Tracing)
    if tracing is not None:
        await asyncio.to_thread(tracing.close)
