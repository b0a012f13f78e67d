import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from refold._cli.main import cli
from refold._install import hook

Refold = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own, in which agents and refold find their settings."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def data(home: Path) -> Path:
    return home / ".local" / "share" / "refold" / "agents"


@pytest.fixture
def refold() -> Refold:
    def run(*words: object) -> Result:
        result = CliRunner().invoke(cli, [str(word) for word in words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def call(data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Call the hook as an agent does, and return its answer."""

    def answer(agent: str, event: dict[str, Any] | bytes, name: str = "") -> Any:
        content = event if isinstance(event, bytes) else json.dumps(event).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert hook.main([agent, str(data), name]) == 0
        words = capsys.readouterr().out
        return json.loads(words) if words else None

    return answer
