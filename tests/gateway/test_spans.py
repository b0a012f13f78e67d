import pytest

from tests.gateway.wire import call, chat

trace = pytest.importorskip("opentelemetry.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


def test_every_exchange_is_a_span_with_the_names_for_generative_ai_and_no_text(gateway, monkeypatch):
    from opentelemetry.sdk.trace import TracerProvider

    from refold.gateway import spans

    exporter = memory.InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    monkeypatch.setattr(spans, "_tracer", lambda: provider.get_tracer("t"))
    serving, _ = gateway(["fine"], window=16_000, background=False)
    call(serving.url, body=chat(9))
    serving.stop()
    (span,) = exporter.get_finished_spans()
    held = dict(span.attributes)
    assert span.name == "chat gpt-4o"
    assert held["gen_ai.operation.name"] == "chat"
    assert held["gen_ai.provider.name"] == "openai"
    assert held["gen_ai.usage.input_tokens"] > 1_000
    assert held["refold.done"] == "compacted"
    assert "word" not in str(held)
