import json
import logging

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from refold.summaries import summarizers
from refold.testing.provider import ScriptedProvider
from tests.gateway.scripted_upstream import ADMIN, call, chat, raw
from tests.gateway.talking import OPENED
from tests.gateway.test_faults import sent

trace = pytest.importorskip("opentelemetry.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")


@pytest.fixture
def exporter(monkeypatch):
    from opentelemetry.sdk.trace import TracerProvider

    from refold._gateway.observability import tracing

    made = memory.InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(made))
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("t"))
    return made


def test_every_exchange_is_a_span_with_the_names_for_generative_ai_and_no_text(gateway, exporter):
    serving, _ = gateway(["fine"], window=16_000, background=False)
    call(serving.url, body=chat(9))
    serving.stop()
    _, span = exporter.get_finished_spans()
    held = dict(span.attributes)
    assert span.name == "chat gpt-4o"
    assert held["gen_ai.operation.name"] == "chat"
    assert held["gen_ai.provider.name"] == "openai"
    assert held["gen_ai.usage.input_tokens"] > 1_000
    assert held["refold.done"] == "compacted"
    assert "word" not in str(held)
    assert held["server.address"] == "127.0.0.1"
    assert held["gen_ai.usage.cache_read.input_tokens"] == 0
    assert span.kind is trace.SpanKind.CLIENT
    assert span.status.is_unset


def test_errors_are_told_by_their_kind(exporter):
    with ScriptedProvider(faults=["rate_limit", "cut_stream"]) as provider:
        upstreams = {"openai": provider.openai_url, "gemini": "http://127.0.0.1:9"}  # where nothing listens
        with Serving(GatewaySettings(upstreams=upstreams, port=0, admin_token=ADMIN)) as serving:
            call(serving.url, body=chat(1))
            raw(serving.url, sent(chat(1, stream=True)))
            call(serving.url, path="/v1beta/models/gemini-2.5-pro:generateContent", body={"contents": []})
    found = exporter.get_finished_spans()
    assert [span.attributes["error.type"] for span in found] == ["429", "upstream_aborted", "upstream_down"]
    assert all(span.status.status_code is trace.StatusCode.ERROR for span in found)


def test_a_span_is_named_by_what_was_asked(gateway, exporter):
    serving, _ = gateway()
    said = [{"role": "user", "content": "secret words"}]
    parts = {"contents": [{"role": "user", "parts": [{"text": "secret words"}]}]}
    call(serving.url, path="/v1/messages/count_tokens", body={"model": "claude-opus-4-6", "messages": said})
    call(serving.url, path="/v1beta/models/gemini-2.5-pro:generateContent", body=parts)
    serving.stop()
    found = exporter.get_finished_spans()
    assert [span.name for span in found] == ["count_tokens claude-opus-4-6", "generate_content gemini-2.5-pro"]
    assert [span.attributes["gen_ai.operation.name"] for span in found] == ["count_tokens", "generate_content"]
    assert "secret" not in "".join(span.to_json() for span in found)


def test_no_thinking_and_no_secret_reaches_spans_figures_logs_or_the_summarizer(gateway, exporter, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    key = "sk-" + "proj-AbCd1234EfGh5678IjKl9012"
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    made = summarizers.client_of
    monkeypatch.setattr(
        summarizers, "client_of", lambda *given, **named: OPENED.append(made(*given, **named)) or OPENED[-1]
    )
    with ScriptedProvider(["The parts were counted, one after the other. " * 40] * 9) as writes:
        serving, _ = gateway(
            ["fine"],
            policy="opal",
            window=12_000,
            background=False,
            summarizer="small",
            summarizer_url=writes.openai_url,
        )
        steps = []
        for step in range(12):
            use = {"type": "tool_use", "id": f"toolu_{step}", "name": "read", "input": {"path": f"{step}.py"}}
            thinking = {"type": "thinking", "thinking": "pondering quietly", "signature": "c2ln"}
            result = {"type": "tool_result", "tool_use_id": f"toolu_{step}", "content": f"KEY={key} " + "words " * 900}
            steps += [{"role": "assistant", "content": [thinking, use]}, {"role": "user", "content": [result]}]
        body = {
            "model": "claude-opus-4-6",
            "max_tokens": 500,
            "messages": [{"role": "user", "content": "Count."}, *steps],
        }
        status, headers, _ = call(serving.url, path="/v1/messages", body=body)
        assert status == 200
        _, _, figures = call(serving.url, method="GET", path="/metrics")
        serving.stop()
        asked = [json.dumps(received.body) for received in writes.received]
    assert asked
    assert "[secret removed]" in "".join(asked)
    told = [span.to_json() for span in exporter.get_finished_spans()] + [
        record.getMessage() for record in caplog.records
    ]
    for text in (*asked, *told, str(figures), str(headers)):
        assert "pondering" not in text
        assert key not in text


def test_a_trace_of_the_client_goes_on_through_the_gateway(gateway, exporter):
    serving, provider = gateway(["fine"])
    trace_id, client = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = {"traceparent": f"00-{trace_id}-{client}-01", "tracestate": "vendor=x"}
    call(serving.url, body=chat(1), headers=headers)
    serving.stop()
    (span,) = exporter.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == trace_id
    assert f"{span.parent.span_id:016x}" == client
    sent_on = provider.received[-1].headers
    assert sent_on["traceparent"] == f"00-{trace_id}-{span.context.span_id:016x}-01"
    assert sent_on["tracestate"] == "vendor=x"


def test_a_compaction_is_a_span_below_its_exchange(gateway, exporter):
    serving, _ = gateway(["fine"], window=16_000, background=False)
    call(serving.url, body=chat(9))
    serving.stop()
    compaction, exchange = exporter.get_finished_spans()
    held = dict(compaction.attributes)
    assert compaction.name == "refold.compaction"
    assert compaction.parent.span_id == exchange.context.span_id
    assert held["refold.policy"] == "refold"
    assert held["refold.tokens.after"] < held["refold.tokens.before"]
    assert held["gen_ai.conversation.id"] == exchange.attributes["gen_ai.conversation.id"]
    assert exchange.attributes["gen_ai.conversation.compacted"] is True


def test_a_compaction_that_fails_is_told_by_the_kind_of_its_error(gateway, exporter, controlled):
    def fail():
        raise RuntimeError("secret words")

    controlled.actions.append(fail)
    serving, _ = gateway(["fine"], window=18_000, background=False, policy=controlled.path)
    call(serving.url, body=chat(9, max_tokens=100))
    serving.stop()
    compaction, exchange = exporter.get_finished_spans()
    assert compaction.attributes["error.type"] == "CompactionAborted"
    assert compaction.status.status_code is trace.StatusCode.ERROR
    assert exchange.attributes["gen_ai.conversation.compacted"] is False
    assert "secret words" not in compaction.to_json()
