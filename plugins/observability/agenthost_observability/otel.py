"""OpenTelemetry: spans of turns and metrics of model calls, sent as ``OTEL_*`` say.

Without those variables nothing is imported, kept or sent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from agenthost import Host, Observer, PluginError, ServiceSpec, hookimpl

if TYPE_CHECKING:
    from .measuring import Measuring
    from .tracing import Tracing

TRACES, METRICS = "TRACES", "METRICS"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
HTTP = "http/protobuf"
OWN_TLS = ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")


def exporter_of(environ: Mapping[str, str], signal: str = TRACES) -> str | None:
    """Tell which exporter the variables ask for; None when they ask for none.

    Args:
        environ: The variables.
        signal: What is to be sent: ``TRACES`` or ``METRICS``.

    Raises:
        PluginError: They ask for something that is not offered.
    """
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    own, all_ = f"OTEL_EXPORTER_OTLP_{signal}", "OTEL_EXPORTER_OTLP"
    addressed = any(environ.get(f"{of}_ENDPOINT", "").strip() for of in (own, all_))
    named = environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    exporter = named or ("otlp" if addressed else "none")
    if exporter not in {"otlp", "console", "none"}:
        raise PluginError(
            f"OTEL_{signal}_EXPORTER: {exporter!r} is not offered; use otlp or console"
        )
    name = f"{own if environ.get(f'{own}_PROTOCOL') else all_}_PROTOCOL"
    protocol = environ.get(name) or HTTP
    if exporter == "otlp" and protocol != HTTP:
        raise PluginError(f"{name}: {protocol!r} is not offered; use {HTTP}")
    for what in OWN_TLS:
        if environ.get(f"{own}_{what}") or environ.get(f"{all_}_{what}"):
            raise PluginError(
                f"{all_}_{what} is not offered: the daemon's own client sends; trust "
                "the authority system-wide, or put a collector beside the daemon"
            )
    return None if exporter == "none" else exporter


def captures_content(environ: Mapping[str, str]) -> bool:
    """Tell whether the operator wants what was said in the spans."""
    return environ.get(CAPTURE, "").strip().lower() == "true"


@hookimpl
def register_observer() -> Iterable[Observer]:
    """Offer spans and metrics, each when there is somewhere to send it."""
    traces, metrics = (exporter_of(os.environ, of) for of in (TRACES, METRICS))
    if traces is metrics is None:
        return
    try:
        from .measuring import Measuring
        from .outward import Outward
        from .sdk import open_meters, open_provider
        from .tracing import Tracing
    except ImportError as error:
        raise PluginError(
            "needs the OpenTelemetry SDK; pip install 'agenthost[opentelemetry]'"
        ) from error
    outward = Outward()
    if traces is not None:
        capture = captures_content(os.environ)
        provider = open_provider(traces, outward.session())
        yield Tracing(provider, outward, content=capture)
    if metrics is not None:
        yield Measuring(open_meters(metrics, outward.session()), outward)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Send what is left when the daemon stops."""
    if any(exporter_of(os.environ, of) for of in (TRACES, METRICS)):
        yield ServiceSpec("opentelemetry", start=_start, stop=_stop)


async def _start(host: Host) -> None:
    """Let both send; until then what there is to send waits."""
    for each in _sending(host):
        if each.outward is not None:
            each.outward.open(host.egress)


async def _stop(host: Host) -> None:
    closing = (asyncio.to_thread(each.close) for each in _sending(host))
    await asyncio.gather(*closing)


def _sending(host: Host) -> list[Tracing | Measuring]:
    from .measuring import Measuring
    from .tracing import Tracing

    found = (host.observer(Tracing), host.observer(Measuring))
    return [each for each in found if each is not None]
