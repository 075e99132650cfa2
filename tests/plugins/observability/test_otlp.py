"""What a collector receives over the wire, read with OpenTelemetry's own messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from agenthost.testing import Daemons
from agenthost_observability import sdk
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

KINDS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Collector:
    """A collector on loopback that keeps what it is sent."""

    def __init__(self) -> None:
        received = self.received = list[tuple[str, str, Any]]()
        asked = self.asked = list[str]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked.append(self.path)
                body = self.rfile.read(int(self.headers["content-length"]))
                sent = KINDS[self.path].FromString(body)
                received.append((self.path, self.headers["x-tenant"], sent))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.close()


async def test_spans_reach_the_collector_before_the_daemon_has_stopped(
    collector: Collector, daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("hello")
    await agent.ask("hi")
    await daemon.daemon.stop()
    by_path = {path: sent for path, _, sent in collector.received}
    assert {tenant for _, tenant, _ in collector.received} == {"blue"}
    sent = by_path["/v1/traces"]
    (resource,) = sent.resource_spans
    service = {a.key: a.value.string_value for a in resource.resource.attributes}
    assert service["service.name"] == "agenthost"
    spans = {s.name: s for s in resource.scope_spans[0].spans}
    assert set(spans) == {"invoke_agent tester", "chat scripted-model"}
    turn, call = spans["invoke_agent tester"], spans["chat scripted-model"]
    assert call.parent_span_id == turn.span_id
    assert call.trace_id == turn.trace_id
    (resource,) = by_path["/v1/metrics"].resource_metrics
    names = [metric.name for metric in resource.scope_metrics[0].metrics]
    assert "gen_ai.client.operation.duration" in names


async def test_what_is_sent_passes_the_guards_of_the_one_client(
    collector: Collector, daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk, "PATIENCE", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    daemon = await daemons.start(config='[plugins]\ndisable = ["ssrf_protection"]\n')
    agent = await daemon.agent()
    daemon.model.says("hello")
    await agent.ask("hi")
    await daemon.daemon.stop()
    assert collector.received == []


async def test_nothing_is_sent_by_a_proxy_of_the_environment(
    collector: Collector, daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(sdk, "PATIENCE", 0.1)
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("hello")
    await agent.ask("hi")
    await daemon.daemon.stop()
    assert collector.asked == []


async def test_a_certificate_of_the_exporters_own_is_not_passed_over(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/tmp/ca.pem")
    daemon = await daemons.start()
    detail = (await daemon.http.get("/api/health/detail")).json()
    states = {state["key"]: state for state in detail["plugins"]}
    assert "CERTIFICATE is not offered" in states["plugin:opentelemetry"]["reason"]


async def test_a_collector_that_is_away_holds_nothing_up_for_long(
    collector: Collector, daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdk, "PATIENCE", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    collector.close()
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("hello")
    assert await agent.ask("hi") == "hello"
    begun = time.monotonic()
    await daemon.daemon.stop()
    assert time.monotonic() - begun < 5.0


async def test_a_setting_that_is_not_offered_fails_the_plugin_alone(
    daemons: Daemons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    daemon = await daemons.start()
    agent = await daemon.agent()
    daemon.model.says("hello")
    assert await agent.ask("hi") == "hello"
    detail = (await daemon.http.get("/api/health/detail")).json()
    states = {state["key"]: state for state in detail["plugins"]}
    assert states["plugin:opentelemetry"]["status"] == "failed"
    assert "use otlp or console" in states["plugin:opentelemetry"]["reason"]
    assert states["plugin:prometheus"]["status"] == "enabled"
