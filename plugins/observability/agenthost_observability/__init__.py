"""Observability of agenthost: OpenTelemetry traces and Prometheus metrics."""
