import re
import socket

import pytest

from refold._gateway.server.serving import Serving
from refold._gateway.settings import GatewaySettings
from tests.gateway.scripted_upstream import ADMIN, call, chat
from tests.gateway.test_acting import searched

parser = pytest.importorskip("prometheus_client.parser")


def figures(serving):
    """Return all figures of a gateway by name and labels."""
    families = list(parser.text_string_to_metric_families(call(serving.url, "GET", "/metrics")[2].decode()))
    for each in families:
        assert re.fullmatch(r"refold(_[a-z]+)+", each.name)
        assert each.documentation
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value for each in families for sample in each.samples
    }


def test_new_output_that_is_cut_and_repairs_are_no_compactions(gateway):
    serving, _ = gateway(window=100_000, background=False, repair=True)
    call(serving.url, body=searched(5_000))
    broken = chat(4)
    del broken["messages"][3]
    call(serving.url, body=broken)
    found = figures(serving)
    assert found["refold_compactions_total", "new-output", "refold"] == 1
    assert found["refold_compactions_total", "repair", "repair"] == 1
    metrics = serving.gateway.metrics
    assert (metrics.total_compactions, metrics.total_cuts) == (0, 1)
    call(serving.url, body=chat(70))
    assert figures(serving)["refold_compactions_total", "refold", "threshold"] == 1
    assert metrics.total_compactions == 1


def test_a_count_of_tokens_saves_none(gateway):
    serving, _ = gateway(window=8_000, background=False)
    words = [" ".join(f"w{number}x{place}" for place in range(400)) for number in range(9)]
    said = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(words)]
    body = {"model": "claude-opus-4-6", "messages": said}
    call(serving.url, path="/v1/messages", body={**body, "max_tokens": 50})
    saved = serving.gateway.metrics.total_saved
    assert saved > 0
    call(serving.url, path="/v1/messages/count_tokens", body=body)
    assert serving.gateway.metrics.total_saved == saved


def test_what_the_gateway_refuses_itself_is_counted_and_marked():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
        with Serving(GatewaySettings(upstreams={"anthropic": f"http://{place}"}, port=0, admin_token=ADMIN)) as serving:
            status, headers, data = call(serving.url, path="/v1/messages", body=chat(1))
            assert (status, headers["x-refold-done"], headers["x-refold-reason"]) == (502, "rejected", "upstream_down")
            assert place.encode() not in data
            call(serving.url, body=chat(1))
            found = figures(serving)
    assert found["refold_errors_total", "anthropic", "upstream_down"] == 1
    assert found["refold_errors_total", "no_upstream", "openai"] == 1
