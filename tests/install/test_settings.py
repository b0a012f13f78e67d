"""What is written into an agent's settings, and that all of it is taken out again."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from refold._install.jsonc import as_json
from refold._install.options import HOOK

Refold = Callable[..., Result]

# settings of users, as they write them: with their own indentation, hooks and empty values
SETTINGS = {
    "none": None,
    "empty object": b"{}",
    "one line": b'{"model": "opus", "hooks": {}, "env": {}}',
    "four spaces": b'{\n    "model": "opus",\n    "env": {\n        "EDITOR": "vi"\n    }\n}',
    "tabs": b'{\n\t"env": {"ENABLE_TOOL_SEARCH": "false"},\n\t"permissions": {"allow": ["Bash"]}\n}\n',
    "hooks of its own": b'{\n  "hooks": {\n    "PostToolUse": [\n      {"matcher": "Bash", "hooks": []}\n    ]\n  }\n}\n',
    "Windows lines": b'{\r\n  "model": "opus",\r\n  "language": "fran\xc3\xa7ais"\r\n}\r\n',
}


@pytest.fixture(params=SETTINGS, ids=str)
def settings(request: pytest.FixtureRequest, home: Path) -> Path:
    path = home / ".claude" / "settings.json"
    if (content := SETTINGS[request.param]) is not None:
        path.parent.mkdir()
        path.write_bytes(content)
        path.chmod(0o600)
    return path


def content_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def test_what_was_installed_is_taken_out_byte_for_byte(settings: Path, refold: Refold, home: Path) -> None:
    before = content_of(settings)
    assert refold("install", "claude-code", "--gateway", "http://127.0.0.1:8080/").exit_code == 0
    installed = json.loads(settings.read_bytes())
    assert set(installed["hooks"]) >= {"PostToolUse", "PreCompact", "SessionStart"}
    assert installed["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8080"
    assert installed["env"]["ENABLE_TOOL_SEARCH"] == "true"
    assert json.loads((home / ".claude.json").read_bytes())["mcpServers"]["refold"]["args"][-1] == "mcp"
    assert refold("uninstall", "claude-code").exit_code == 0
    assert content_of(settings) == before
    assert not (home / ".claude.json").exists()
    if before is not None:
        assert stat.S_IMODE(settings.stat().st_mode) == 0o600


def test_installing_twice_is_installing_once(settings: Path, refold: Refold) -> None:
    before = content_of(settings)
    refold("install", "claude-code")
    once = settings.read_bytes()
    again = refold("install", "claude-code")
    assert settings.read_bytes() == once
    assert "nothing was changed" in again.stderr
    refold("install", "claude-code", "--no-mcp", "--gateway", "http://127.0.0.1:8080")
    refold("uninstall", "claude-code")
    assert content_of(settings) == before


def test_what_the_user_changed_since_stays_and_ours_goes(settings: Path, refold: Refold) -> None:
    before = json.loads(content_of(settings) or b"{}")
    refold("install", "claude-code", "--gateway", "http://127.0.0.1:8080")
    changed = json.loads(settings.read_bytes())
    changed["theme"] = "dark"
    settings.write_text(json.dumps(changed))
    refold("uninstall", "claude-code")
    assert json.loads(settings.read_bytes()) == {**before, "theme": "dark"}


def test_a_base_url_that_the_user_has_set_since_is_the_user_s(settings: Path, refold: Refold) -> None:
    refold("install", "claude-code", "--gateway", "http://127.0.0.1:8080")
    changed = json.loads(settings.read_bytes())
    changed["env"]["ANTHROPIC_BASE_URL"] = "https://other.example"
    settings.write_text(json.dumps(changed))
    refold("uninstall", "claude-code")
    assert json.loads(settings.read_bytes())["env"]["ANTHROPIC_BASE_URL"] == "https://other.example"


def test_a_dry_run_prints_the_changes_and_writes_nothing(settings: Path, refold: Refold, home: Path) -> None:
    before = content_of(settings)
    done = refold("install", "claude-code", "--dry-run")
    assert f"+++ {settings}" in done.stdout
    assert "PostToolUse" in done.stdout
    assert content_of(settings) == before
    assert {path for path in home.rglob("*") if path.is_file()} <= {settings}


COMMENTED = """// mine
{
  // "quoted" {braces}
  "theme": "http://dark//", // why
  /* none
     yet, */
  "hooks": {
    // here
  },
  "mcpServers": {"other": {"command": "x",},}, // last
}
"""


@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_comments_and_line_ends_of_settings_stay_when_ours_come_and_go(refold: Refold, home: Path, line: str) -> None:
    path, before = home / ".gemini" / "settings.json", COMMENTED.replace("\n", line).encode()
    path.parent.mkdir()
    path.write_bytes(before)
    assert refold("install", "gemini-cli").exit_code == 0
    installed = path.read_bytes()
    value = json.loads(as_json(installed.decode()))
    assert set(value["hooks"]) == {"AfterTool", "PreCompress"}
    assert set(value["mcpServers"]) == {"other", "refold"}
    assert installed.count(line.encode()) == installed.count(b"\n")
    assert refold("install", "gemini-cli").exit_code == 0
    assert path.read_bytes() == installed
    refold("uninstall", "gemini-cli")
    assert path.read_bytes() == before

    refold("install", "gemini-cli")
    path.write_bytes(installed.replace(b'"theme"', b'"more": 1, "theme"'))
    refold("uninstall", "gemini-cli")
    left = path.read_text()
    assert json.loads(as_json(left)) == {"more": 1, **json.loads(as_json(COMMENTED))}
    assert all(
        comment in left for comment in ("// mine", '// "quoted" {braces}', "// why", "/* none", "// here", "// last")
    )


@pytest.mark.parametrize("place", ["settings.json", ""])
def test_settings_that_are_read_only_are_refused_and_nothing_is_written(
    refold: Refold, home: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text("{}")
    locked, access = path.parent / place, os.access
    monkeypatch.setattr(os, "access", lambda each, mode: Path(each) != locked and access(each, mode))
    done = refold("install", "claude-code")
    assert done.exit_code == 2
    assert f"{locked} is read-only" in done.stderr
    assert [each for each in home.rglob("*") if each.is_file()] == [path]
    assert path.read_text() == "{}"


@pytest.mark.parametrize("content", ["", "\n", "\ufeff", "\ufeff{}"])
def test_a_file_that_is_empty_or_has_a_byte_order_mark_is_one_of_no_settings(
    refold: Refold, home: Path, content: str
) -> None:
    path = home / ".claude.json"
    path.write_text(content)
    assert refold("install", "claude-code").exit_code == 0
    assert json.loads(path.read_text("utf-8-sig"))["mcpServers"]["refold"]
    refold("uninstall", "claude-code")
    assert path.read_text() == content


@pytest.mark.parametrize("content", ["[]", '{"hooks": []}', '{"hooks": {"PostToolUse": 1}}', '{"a": 1', "\xff"])
def test_settings_of_another_form_are_refused_with_the_place(content: str, refold: Refold, home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(content.encode("latin-1"))
    done = refold("install", "claude-code")
    assert done.exit_code == 2
    assert str(path) in done.stderr
    assert path.read_bytes() == content.encode("latin-1")


def test_a_project_s_settings_are_changed_instead_of_the_user_s(refold: Refold, home: Path) -> None:
    project = home / "project"
    project.mkdir()
    refold("install", "claude-code", "--project", project)
    files = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert files == {".claude/settings.json", ".mcp.json"}
    assert not (home / ".claude").exists()
    refold("uninstall", "claude-code", "--project", project)
    assert not [path for path in project.rglob("*") if path.is_file()]


def test_a_link_to_settings_stays_a_link(refold: Refold, home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}")
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").symlink_to(real)
    refold("install", "claude-code")
    assert "hooks" in real.read_text()
    refold("uninstall", "claude-code")
    assert os.path.islink(home / ".claude" / "settings.json")
    assert real.read_text() == "{}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("install", "claude"), "did you mean claude-code?"),
        (("install", "claude-code", "--gateway", "localhost:8080"), "give the URL of a gateway"),
        (("install", "claude-code", "--no-mcp", "--no-hooks"), "nothing is left to install"),
        (("doctor", "nothing"), "there is no agent"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(
    words: tuple[str, ...], message: str, refold: Refold, home: Path
) -> None:
    done = refold(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not list(home.iterdir())


CODEX = b"""# mine
model = "gpt-5"
model_provider = "azure"  # at work

[model_providers.azure]
name = "Azure"
base_url = "https://azure.example/v1"
env_key = "AZURE_KEY"
[mcp_servers.other]
command = "other\""""


@pytest.mark.parametrize("content", [None, b"", CODEX, CODEX.replace(b"\n", b"\r\n")])
def test_codex_settings_are_restored_and_its_provider_is_that_of_the_user_behind_the_gateway(
    content: bytes | None, refold: Refold, home: Path
) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    assert refold("install", "codex", "--gateway", "http://127.0.0.1:8080").exit_code == 0
    settings = tomllib.loads(path.read_bytes().decode())
    assert settings["model_provider"] == "refold"
    assert settings["mcp_servers"]["refold"]["args"][-1] == "mcp"
    provider = settings["model_providers"]["refold"]
    assert provider["base_url"] == "http://127.0.0.1:8080/v1"
    assert provider.get("env_key") == ("AZURE_KEY" if content else None)
    assert set(json.loads((path.parent / "hooks.json").read_bytes())["hooks"]) == {
        "PostToolUse", "PreCompact", "SessionStart",
    }  # fmt: skip
    assert refold("uninstall", "codex").exit_code == 0
    assert content_of(path) == content
    assert not (path.parent / "hooks.json").exists()


def test_what_was_added_to_codex_settings_since_stays(refold: Refold, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(CODEX + b"\n")
    refold("install", "codex", "--gateway", "http://127.0.0.1:8080")
    path.write_bytes(path.read_bytes() + b"\n[mcp_servers.later]\ncommand = 'x'\n")
    refold("uninstall", "codex")
    assert path.read_bytes() == CODEX + b"\n\n[mcp_servers.later]\ncommand = 'x'\n"


@pytest.mark.parametrize("content", [b"model = ", b"[mcp_servers.refold]\ncommand = 'x'\n"])
def test_codex_settings_that_cannot_be_joined_are_refused(content: bytes, refold: Refold, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_bytes(content)
    done = refold("install", "codex")
    assert done.exit_code == 2
    assert str(path) in done.stderr
    assert path.read_bytes() == content
    assert not (path.parent / "hooks.json").exists()


@pytest.mark.parametrize("content", [None, b'{\n\t"hooks": {"AfterTool": []},\n\t"mcpServers": {}\n}'])
def test_gemini_cli_s_settings_are_restored(content: bytes | None, refold: Refold, home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    assert refold("install", "gemini-cli").exit_code == 0
    settings = json.loads(path.read_bytes())
    assert len(settings["hooks"]["AfterTool"]) == 1
    (compression,) = settings["hooks"]["PreCompress"]
    assert compression["matcher"] == "manual"  # the automatic one comes before every request
    assert settings["mcpServers"]["refold"]["args"][-1] == "mcp"
    path.write_text(json.dumps(settings, indent=4))  # as the agent writes it
    refold("uninstall", "gemini-cli")
    assert content_of(path) is None if content is None else json.loads(path.read_bytes()) == json.loads(content)


@pytest.mark.parametrize(
    ("there", "used"),
    [((), ".gemini/.env"), ((".env",), ".env"), ((".gemini/.env",), ".gemini/.env"),
     ((".env", ".gemini/.env"), ".gemini/.env")],
)  # fmt: skip
def test_the_gateway_of_gemini_cli_is_a_variable_in_the_file_that_it_reads(
    there: tuple[str, ...], used: str, refold: Refold, home: Path
) -> None:
    files = {home / name: f"GEMINI_API_KEY=of {name}" for name in (".env", ".gemini/.env")}
    (home / ".gemini").mkdir()
    for name in there:
        (home / name).write_text(files[home / name])
    assert refold("install", "gemini-cli", "--gateway", "http://127.0.0.1:8080").exit_code == 0
    changed = [path for path in files if path.exists() and "refold" in path.read_text()]
    assert changed == [home / used]
    variables = [line for line in (home / used).read_text().splitlines() if not line.startswith("#")]
    assert variables[-1] == "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8080"
    (home / used).write_text((home / used).read_text() + "MINE=1\n")
    refold("uninstall", "gemini-cli")
    for path, text in files.items():
        mine = "MINE=1\n" if path == home / used else ""
        before = text if str(path.relative_to(home)) in there else ""
        assert (path.read_text() if path.exists() else "") == before + mine


@pytest.mark.parametrize(
    ("agent", "place", "setting"),
    [
        ("opencode", ".config/opencode/opencode.json", ("provider", "openai", "options", "baseURL")),
        ("pi", ".pi/agent/models.json", ("providers", "openai", "baseUrl")),
    ],
)
@pytest.mark.parametrize("own", [None, "https://mine.example/v1"])
def test_a_gateway_is_the_base_url_of_each_provider_and_the_user_s_own_comes_back(
    agent: str, place: str, setting: tuple[str, ...], own: str | None, refold: Refold, home: Path
) -> None:
    path = home / place
    path.parent.mkdir(parents=True)
    before: Any = {"mine": 1}
    if own:
        for key in reversed(setting):
            before = {key: before if key != setting[-1] else own}
    path.write_text(json.dumps(before, indent=3))
    refold("install", agent, "--gateway", "http://127.0.0.1:8080/")
    urls = re.findall(r'"(http:[^"]*)"', path.read_text())
    ends = {"opencode": {"/v1", "/v1beta"}, "pi": {"", "/v1", "/v1beta"}}[agent]
    assert {url.removeprefix("http://127.0.0.1:8080") for url in urls} == ends
    assert len(urls) == 3
    path.write_text(json.dumps({**json.loads(path.read_text()), "later": 2}))
    refold("install", agent)  # without one
    refold("uninstall", agent)
    assert json.loads(path.read_text()) == {**before, "later": 2}


def test_pi_has_no_base_url_for_a_project(refold: Refold, home: Path) -> None:
    done = refold("install", "pi", "--project", home, "--gateway", "http://127.0.0.1:8080")
    assert done.exit_code == 2
    assert "leave out --project" in done.stderr


def test_what_is_not_changed_is_not_in_the_record(refold: Refold, home: Path, data: Path) -> None:
    (home / ".env").write_text("GEMINI_API_KEY=secret")
    refold("install", "gemini-cli", "--gateway", "http://127.0.0.1:8080")
    refold("install", "gemini-cli")
    record = json.loads((data / "installed" / "gemini-cli.json").read_text())
    assert [Path(name).name for name in record["files"]] == ["settings.json"]


def test_pi_gets_an_extension_that_calls_the_hook_and_loses_it_again(refold: Refold, home: Path) -> None:
    servers = home / ".pi" / "agent" / "mcp.json"
    servers.parent.mkdir(parents=True)
    servers.write_text('{"mcpServers": {"other": {"command": "x"}}}')
    refold("install", "pi")
    extension = servers.parent / "extensions" / "refold.ts"
    assert f'"{HOOK}", "pi"' in extension.read_text()
    assert set(json.loads(servers.read_text())["mcpServers"]) == {"other", "refold"}
    refold("uninstall", "pi")
    assert not extension.exists()
    assert servers.read_text() == '{"mcpServers": {"other": {"command": "x"}}}'


def test_an_extension_of_another_is_not_replaced(refold: Refold, home: Path) -> None:
    extension = home / ".pi" / "agent" / "extensions" / "refold.ts"
    extension.parent.mkdir(parents=True)
    extension.write_text("export default 1")
    assert refold("install", "pi").exit_code == 2
    assert extension.read_text() == "export default 1"


def test_opencode_gets_a_plugin_that_calls_the_hook_and_loses_it_again(refold: Refold, home: Path) -> None:
    settings = home / ".config" / "opencode" / "opencode.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"share": "disabled"}')
    refold("install", "opencode")
    plugin = settings.parent / "plugins" / "refold.ts"
    assert f'"{HOOK}", "opencode"' in plugin.read_text()
    assert json.loads(settings.read_text())["mcp"]["refold"]["command"][-1] == "mcp"
    refold("uninstall", "opencode")
    assert not plugin.exists()
    assert settings.read_text() == '{"share": "disabled"}'


@pytest.mark.parametrize(
    ("agent", "place", "path"),
    [
        ("claude-code", ".claude.json", ("mcpServers", "refold")),
        ("pi", ".pi/agent/mcp.json", ("mcpServers", "refold")),
        ("opencode", ".config/opencode/opencode.json", ("mcp", "refold")),
        ("gemini-cli", ".gemini/settings.json", ("mcpServers", "refold")),
    ],
)
def test_a_server_of_the_user_with_our_name_comes_back(
    agent: str, place: str, path: tuple[str, str], refold: Refold, home: Path
) -> None:
    settings = home / place
    settings.parent.mkdir(parents=True, exist_ok=True)
    own = {path[0]: {path[1]: {"command": "refold", "args": ["mcp", "--store", "mine.db"]}}}
    settings.write_text(json.dumps(own))
    refold("install", agent)
    assert json.loads(settings.read_text())[path[0]][path[1]] != own[path[0]][path[1]]
    refold("uninstall", agent)
    assert settings.read_text() == json.dumps(own)


@pytest.mark.parametrize(
    ("agent", "place"),
    [("claude-code", ".claude.json"), ("pi", ".pi/agent/mcp.json"), ("gemini-cli", ".gemini/settings.json")],
)
def test_our_server_goes_after_a_change_of_the_user_and_of_python(
    agent: str, place: str, refold: Refold, home: Path
) -> None:
    settings = home / place
    refold("install", agent)
    changed = {**json.loads(settings.read_text()), "theirs": 1}
    changed["mcpServers"]["refold"]["command"] = "/usr/bin/an-older-python"
    settings.write_text(json.dumps(changed))
    refold("uninstall", agent)
    assert json.loads(settings.read_text()) == {"theirs": 1}
