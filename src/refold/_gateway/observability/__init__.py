"""Metrics for Prometheus and spans for OpenTelemetry; never any text of a request."""
