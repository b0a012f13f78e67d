"""The conversations whose plans are kept as files beside this one, and how each policy is asked for a plan."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from refold._compaction.driver import plan_request
from refold._compaction.options import Options
from refold._compaction.request import request_for
from refold.core._plan_json import dump_plan
from refold.core.counting import Counter
from refold.core.messages import Message
from refold.core.needs import FileNeed
from refold.core.plan import Plan, sealed
from refold.handlers import Handlers
from refold.testing import ScriptedSummarizer

FOLDER = Path(__file__).parent
FORMAT = "anthropic"
SUMMARY = """Goal: find out why orders are charged twice, and mend it without touching the database schema.
Done: the retry in shop/payment.py was found to send a second charge; a key per order now makes it safe.
Next: run the whole test suite and write the change log entry."""
# Tokens of the window for each policy, in which it is due by its own way of counting; others get the usual ones.
USUAL = {"repair": 10_000, "audit": 100_000}
WINDOWS = {
    "claude-code": {"repair": 12_000, "audit": 100_000},
    "neurolink": {"repair": 10_000, "audit": 100_000},
    "opal": {"repair": 7_400, "audit": 80_000},
    "refold": {"repair": 17_000, "audit": 157_000},
    "vibe": {"repair": 14_000, "audit": 141_000},
    "wolffish": {"repair": 20_000, "audit": 240_000},
}
CASES = ("repair", "audit")


class Made(NamedTuple):
    """A plan with what it was made from."""

    plan: Plan
    messages: tuple[Message, ...]
    counter: Counter


def made(policy: str, case: str) -> Made:
    """Return the plan of a policy for a case."""
    options = Options(
        format=FORMAT,
        policy=policy,
        window=window(policy, case),
        system="You mend a web shop.",
        max_output=2_000,
        wait=False,
    )
    request = request_for(conversation(case), options)
    outside = Handlers(
        summarize=ScriptedSummarizer(SUMMARY),
        read_file=_file,
        archive=lambda need: "transcript.jsonl",
        count=lambda need: sum(map(request.exact.message, need.messages)),
    )
    return Made(plan_request(request, outside).plan, request.view.transcript.messages, request.view.counter)


def window(policy: str, case: str) -> int:
    """Return the window in which a policy meets a case."""
    return WINDOWS.get(policy, USUAL)[case]


def wire(plan: Plan) -> bytes:
    """Return a plan as it is kept: JSON with two spaces, a newline at the end, without the policy's fingerprint.

    A fingerprint covers every option of every stage, so each new option would rewrite all files.
    """
    return dump_plan(sealed(replace(plan, fingerprint="")), indent=2) + b"\n"


def path(policy: str, case: str) -> Path:
    """Return where a plan is kept."""
    return FOLDER / policy / f"{case}.plan.json"


def conversation(case: str) -> list[dict[str, Any]]:
    """Return the messages of a case: a short repair, or a long audit with the same story and larger outputs."""
    return _repair(1 if case == "repair" else 14)


def _repair(scale: int) -> list[dict[str, Any]]:
    talk = _Talk()
    talk.user("Orders are sometimes charged twice. Find out why and mend it. Never change the database schema.")
    talk.call("I look for the place first.", "grep", {"pattern": "charge(", "path": "shop"}, _hits(18 * scale))
    talk.call("", "read_file", {"path": "shop/payment.py"}, _code("payment", 90 * scale))
    talk.call("", "read_file", {"path": "shop/orders.py"}, _code("orders", 70 * scale))
    talk.call("Now the tests.", "bash", {"command": "pytest tests/shop -q"}, _log(60 * scale))
    talk.say(
        "The retry in charge() sends the request again after a timeout, with a new key. That is the second charge."
    )
    talk.user("Good. Use the order number as the key, and keep the retry.")
    change = {"path": "shop/payment.py", "old_string": "key = uuid4()", "new_string": "key = order.number"}
    talk.call("I change that line.", "edit_file", change, "1 replacement in shop/payment.py")
    talk.call("", "read_file", {"path": "shop/payment.py"}, _code("payment", 90 * scale, key="order.number"))
    talk.call("", "bash", {"command": "pytest tests/shop -q"}, "ERROR: fixture 'gateway' not found\n" * 3, error=True)
    talk.call("A fixture is missing.", "read_file", {"path": "tests/conftest.py"}, _code("conftest", 40 * scale))
    talk.call("", "screenshot", {"url": "http://localhost:8000/orders"}, "", image=True)
    talk.call("The page shows one charge.", "bash", {"command": "pytest tests/shop -q"}, _log(75 * scale))
    talk.say("All 214 tests pass, and no other place makes keys of its own.")
    talk.user("Now run the whole suite and write an entry for the change log.")
    talk.call("", "bash", {"command": "pytest -q"}, _log(50 * scale))
    talk.call("All pass. Now the change log.", "read_file", {"path": "CHANGELOG.md"}, _code("entry", 25 * scale))
    return talk.messages


class _Talk:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def user(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def say(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": text})

    def call(
        self, text: str, name: str, arguments: dict[str, Any], output: str, *, error: bool = False, image: bool = False
    ) -> None:
        call_id = f"toolu_{len(self.messages):02}"
        said: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        said.append({"type": "tool_use", "id": call_id, "name": name, "input": arguments})
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id, "content": output}
        if image:
            result["content"] = [_picture()]
        if error:
            result["is_error"] = True
        self.messages += [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]


def _hits(count: int) -> str:
    return "\n".join(
        f"shop/module_{n % 23:02}.py:{17 * n % 400 + 1}:    gateway.charge(order_{n})" for n in range(count)
    )


def _code(name: str, lines: int, key: str = "uuid4()") -> str:
    body = (
        f"{n:4}  def {name}_{n:03}(order, gateway):  # key = {key}"
        if n % 6 == 1
        else f"{n:4}      total += {name}[{n}]"
        for n in range(1, lines + 1)
    )
    return "\n".join(body)


def _log(lines: int) -> str:
    tests = (f"tests/shop/test_{n % 31:02}.py::test_case_{n:04} PASSED [{n * 100 // lines:3}%]" for n in range(lines))
    return "\n".join((*tests, f"{lines} passed in {lines / 40:.2f}s"))


def _picture() -> dict[str, Any]:
    """Return a picture block whose header says 1,280 x 800 and that holds nothing else."""
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 1_280, 800, 8, 2, 0, 0, 0)
    data = base64.b64encode(head).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def _file(need: FileNeed) -> str:
    return _code(Path(need.path).stem, 40, key="order.number")
