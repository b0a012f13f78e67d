import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

Refold = Callable[..., Result]


def found(refold: Refold, *words: object) -> dict[str, tuple[bool, str]]:
    findings = json.loads(refold("doctor", "--json", *words).stdout)["findings"]
    return {each["what"]: (each["well"], each["words"]) for each in findings}


def test_nothing_installed_is_said_so(refold: Refold, home: Path) -> None:
    done = refold("doctor")
    assert "nothing is installed" in done.stdout
    assert done.exit_code == 0


def test_a_hook_that_was_never_called_is_no_success_and_one_that_was_is(
    refold: Refold, call: Callable[..., Any]
) -> None:
    refold("install", "claude-code")
    assert found(refold)["hooks"] == (False, "never called: start claude-code and let it run a command")
    call(
        "claude-code", {"hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash", "tool_response": "ok"}
    )
    well, words = found(refold)["hooks"]
    assert well
    assert words.startswith("PostToolUse 1; 0 outputs shortened")


def test_settings_that_were_changed_since_are_named(refold: Refold, home: Path) -> None:
    refold("install", "claude-code")
    assert found(refold)["settings"] == (True, "as installed")
    path = home / ".claude" / "settings.json"
    path.write_text("{}")
    well, words = found(refold)["settings"]
    assert not well
    assert str(path) in words


def test_settings_that_the_agent_wrote_anew_are_as_installed(refold: Refold, home: Path) -> None:
    refold("install", "claude-code")
    path = home / ".claude.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "numStartups": 4}, indent=4))
    assert found(refold)["settings"] == (True, "as installed")


def test_a_gateway_that_does_not_answer_is_named(refold: Refold, home: Path) -> None:
    refold("install", "claude-code", "--gateway", "http://127.0.0.1:9")
    well, words = found(refold)["gateway"]
    assert not well
    assert "start `refold serve`" in words
