"""Runs one peer inside the environment of its family: a request a line on stdin, an answer a line on stdout."""

from __future__ import annotations

import copy
import json
import logging
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from adapters import peers


def answer(peer: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return what one pass made of a conversation, and the seconds of processor time that it took."""
    native = peer.load(copy.deepcopy(request["messages"]))
    start = time.process_time()
    made = peer.compact(native, request["budget"])
    seconds = time.process_time() - start
    return {"messages": as_written(request["messages"], peer.dump(made)), "seconds": seconds}


def as_written(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put arguments that are the same values back as they were written; types of a peer's own spell JSON anew."""
    known = {
        call["id"]: call["function"]["arguments"] for message in before for call in message.get("tool_calls") or ()
    }
    for message in after:
        for call in message.get("tool_calls") or ():
            written, spelled = known.get(call["id"]), call["function"]["arguments"]
            if written is not None and written != spelled and same(written, spelled):
                call["function"]["arguments"] = written
    return after


def same(one: str, other: str) -> bool:
    """Tell whether two texts are the same JSON value."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def main() -> None:
    """Serve requests until stdin ends; what a peer prints goes to stderr."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(value: dict[str, Any]) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    try:
        peer = next(each for each in peers() if each.name == sys.argv[1])()
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
        raise
    say({"ready": True})
    kept: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        kept = {key: request.get(key, kept.get(key)) for key in ("messages", "weights")} | {"budget": request["budget"]}
        try:
            if hasattr(peer, "prepare"):
                peer.prepare(kept["weights"])
            say(answer(peer, kept))
        except Exception as error:  # a peer that fails is a result, not the end of the run
            traceback.print_exc()
            say({"error": f"{type(error).__name__}: {error}"[:300]})


if __name__ == "__main__":
    main()
