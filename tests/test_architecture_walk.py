"""The architecture page lists the functions that a request passes; a traced call must pass them in that order."""

import re
import sys
import threading
from pathlib import Path

import pytest

import refold
from refold.testing.provider import ScriptedProvider
from tests.gateway.conftest import standing
from tests.gateway.scripted_upstream import call, chat

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "refold"
STEP = re.compile(r"^\d+\. \[`(\w+)`\]\(\.\./src/refold/([\w/]+\.py)\)", re.M)


def steps_of(title: str) -> list[tuple[str, str]]:
    """The steps of a section of the architecture page: function and module."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [(name, module) for name, module in STEP.findall(section)]


def calls_of(run) -> list[tuple[str, str, str]]:
    """Every call within the package while `run` runs: function, its module, and the module that called it."""
    calls = []

    def trace(frame, event, _):
        if event != "call" or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return
        back = frame.f_back
        while back is not None and not back.f_code.co_filename.startswith(str(SOURCE)):
            back = back.f_back  # through functions of the standard library, such as map
        caller = str(Path(back.f_code.co_filename).relative_to(SOURCE)) if back else ""
        calls.append((frame.f_code.co_name, str(Path(frame.f_code.co_filename).relative_to(SOURCE)), caller))

    threading.setprofile(trace)  # the gateway serves in a thread, and plans in another
    sys.setprofile(trace)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


def compact():
    messages = [{"role": "user", "content": "Count the errors in each log."}]
    for n in range(40):
        call = {"name": "read_file", "arguments": f'{{"path": "{n}.log"}}'}
        calls = [{"id": f"c{n}", "type": "function", "function": call}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"ERROR in worker {n}\n" * 100})
    assert not refold.compact(messages, window=32_000).plan.empty


def streamed():
    body = chat(10, stream=True, stream_options={"include_usage": True})
    with ScriptedProvider() as provider, standing(provider, window=16_000, background=False) as serving:
        status, headers, data = call(serving.url, body=body)
    assert (status, headers["x-refold-done"], b"data: " in data) == (200, "compacted", True)


WALKS = {
    "One message through `compact`": (compact, 8),
    "One streamed request through the gateway": (streamed, 12),
}


@pytest.mark.parametrize("title", WALKS)
def test_the_steps_of_the_page_are_called_in_that_order(title):
    run, _ = WALKS[title]
    steps = steps_of(title)
    assert len(steps) > 5
    calls = iter([(name, module) for name, module, _ in calls_of(run)])
    assert not [step for step in steps if step not in calls], "not called, or not after the step before"


@pytest.mark.parametrize("title", WALKS)
def test_each_step_is_called_by_a_module_of_the_page(title):
    run, _ = WALKS[title]
    steps = steps_of(title)
    modules = {module for _, module in steps}
    callers = {}
    for name, module, caller in calls_of(run):
        callers.setdefault((name, module), set()).add(caller)
    alone = [step for step in steps[1:] if not callers[step] & modules]
    assert not alone, "a reader of the page would not see who calls these"


@pytest.mark.parametrize("title", WALKS)
def test_a_reader_opens_few_modules(title):
    _, most = WALKS[title]
    assert len({module for _, module in steps_of(title)}) <= most
