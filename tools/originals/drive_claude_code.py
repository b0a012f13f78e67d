"""Drives learn-claude-code's context manager: `python drive_claude_code.py FILE < job.json > decisions.json`.

FILE is `v5_compression_agent.py` of `shareAI-lab/learn-claude-code` (MIT), as its forks have it at commit d5c16a7, the
newest revision of version 5 there is. The text that this project follows describes a later one, so it is loaded with
the settings below; the model's client answers from a script.
"""

from __future__ import annotations

import copy
import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

TOOLS = {"bash", "read_file", "write_file", "edit_file", "glob", "grep", "list_dir", "notebook_edit"}
SETTINGS = (
    "eight tools are cleared; in the code four",
    "nothing is cleared unless 20,000 tokens are saved; in the code compaction has that condition",
    "whether compaction is due depends on the size alone; in the code on the savings too",
    "everything is replaced; in the code the last five messages stay behind the summary and the files",
)


class Client:
    """Answers every call with one text."""

    def __init__(self, **_: Any) -> None:
        self.messages = self
        self.text = ""

    def create(self, **request: Any) -> Any:
        self.request = request
        return types.SimpleNamespace(content=[types.SimpleNamespace(text=self.text)])


def loaded(path: Path) -> Any:
    """Return the module, set back, in a folder of its own."""
    sys.modules["anthropic"] = types.SimpleNamespace(Anthropic=Client)  # type: ignore[assignment]
    sys.modules["dotenv"] = types.SimpleNamespace(load_dotenv=lambda **_: None)  # type: ignore[assignment]
    os.chdir(tempfile.mkdtemp())
    module = types.ModuleType("v5")
    exec(compile(path.read_text("utf-8"), path.name, "exec"), module.__dict__)  # noqa: S102 - the file that the command line names
    module.CTX.COMPACTABLE_TOOLS = TOOLS
    return module


def cleared(v5: Any, messages: list[dict[str, Any]]) -> list[str]:
    """Return the ids of the results that are cleared, with the guard of the setting."""
    after = v5.CTX.microcompact(copy.deepcopy(messages))
    pairs = [
        (block, new)
        for message, changed in zip(messages, after, strict=True)
        if isinstance(message["content"], list)
        for block, new in zip(message["content"], changed["content"], strict=True)
        if block.get("content") != new.get("content")
    ]
    saved = sum(v5.CTX.estimate_tokens(block["content"]) for block, _ in pairs)
    return [block["tool_use_id"] for block, _ in pairs] if saved >= 20_000 else []


def due(v5: Any, messages: list[dict[str, Any]]) -> list[Any]:
    """Return the size that is compared, and whether compaction is due at that threshold and one below it."""
    sizes = [v5.CTX.estimate_tokens(json.dumps(message, default=str)) for message in messages]
    v5.MIN_SAVINGS = -sum(sizes)
    answers = []
    for threshold in (sum(sizes), sum(sizes) - 1):
        v5.CTX.TOKEN_THRESHOLD = threshold
        answers.append(v5.CTX.should_compact(messages))
    return [sum(sizes), *answers]


def compacted(v5: Any, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what replaces the messages: roles, whether the first is the summary, and the files that come back."""
    after = v5.CTX.auto_compact(copy.deepcopy(messages))
    after = after[: -(5 if len(messages) > 5 else len(messages[-2:]))]
    head = f"[Conversation compressed]\n\n{v5.client.text}"
    restored = [message["content"] for message in after[2:] if message["content"].startswith("[Restored")]
    return {
        "roles": [message["role"] for message in after],
        "summary": after[0]["content"] == head,
        "files": [text.split(" ", 3)[3].split(":", 1)[0] for text in restored],
        "acknowledged": [message["content"] == "Noted, file content restored." for message in after[3::2]],
        "limit": v5.client.request["max_tokens"],
    }


def main() -> None:
    """Drive everything that standard input names."""
    job = json.load(sys.stdin)
    v5 = loaded(Path(sys.argv[1]).resolve())
    v5.client.text = job["summary"]
    for name, text in job["files"].items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    made = []
    for history in job["histories"]:
        messages = history["messages"]
        one = {"name": history["name"], "digest": history["digest"], "cleared": cleared(v5, messages)}
        made.append(one | {"due": due(v5, messages), "compacted": compacted(v5, messages)})
    out = {
        "settings": SETTINGS,
        "thresholds": [[w, m, v5.auto_compact_threshold(w, m)] for w, m in job["windows"]],
        "outputs": [[n, v5.CTX.handle_large_output("x" * n) != "x" * n] for n in job["outputs"]],
        "histories": made,
    }
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
