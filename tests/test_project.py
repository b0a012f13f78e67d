"""The files that run the project's commands elsewhere name commands that there are."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def test_hosted_ci_runs_the_commands_of_the_makefile_and_nothing_else():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    commands = ["make ${{ matrix.target }}", "make adapters ADAPTERS=${{ matrix.adapter }}"]
    assert re.findall(r"^ *- run: (.*)$", workflow, re.M) == commands
    targets = re.search(r"target: \[(.*)\]", workflow)[1].split(", ")
    assert {"lint", "types", "quick", "test", "site"} <= set(targets) <= TARGETS


def test_each_adapter_has_an_extra_a_lock_tests_a_section_a_place_in_the_makefile_and_a_job():
    modules = sorted(path.stem.replace("_", "-") for path in (ROOT / "src" / "refold" / "adapt").glob("[a-z]*.py"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(modules) <= project["optional-dependencies"].keys()
    assert sorted(path.stem for path in (ROOT / "requirements" / "adapters").glob("*.txt")) == modules
    tests = (ROOT / "tests" / "adapters").glob("test_*.py")
    assert sorted(path.stem.removeprefix("test_").replace("_", "-") for path in tests) == modules
    page = (ROOT / "docs" / "frameworks.md").read_text("utf-8")
    assert sorted(re.findall(r"pip install 'refold\[([\w-]+)\]'", page)) == modules
    assert sorted(re.search(r"^ADAPTERS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)[1].split()) == modules
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert sorted(re.search(r"adapter: \[(.*)\]", workflow)[1].split(", ")) == modules


def test_hosted_ci_runs_the_deep_tests_each_night():
    nightly = (ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8")
    assert re.findall(r"^ *- run: (.*)$", nightly, re.M) == ["make test-deep"]
    assert "test-deep" in TARGETS
    assert re.search(r"^  schedule:\n    - cron: ", nightly, re.M)


@pytest.mark.parametrize("name", ["ci.yml", "nightly.yml"])
def test_hosted_ci_pins_its_actions_and_may_only_read(name):
    workflow = (ROOT / ".github" / "workflows" / name).read_text("utf-8")
    used = re.findall(r"uses: (\S+)", workflow)
    assert used
    assert not [action for action in used if not re.search(r"@v\d+\.\d+\.\d+$", action)]
    assert "permissions:\n  contents: read\n" in workflow
    assert "write" not in workflow


def test_each_lock_is_installed_by_the_makefile_and_written_by_it():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    locks = sorted(path.stem for path in (ROOT / "requirements").glob("*.txt"))
    assert sorted(re.findall(r"^\$\(VENV\)/\.ready\S*: requirements/(\w+)\.txt ", makefile, re.M)) == locks
    assert sorted(re.findall(r" -o requirements/(\w+)\.txt$", makefile, re.M)) == locks


def test_the_hooks_of_a_commit_run_tools_that_are_in_the_lock():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    tools = set(re.findall(r"entry: \.venv/bin/(\S+)", hooks))
    lock = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    assert tools == {"ruff", "mypy"}
    assert not [tool for tool in tools if not re.search(rf"^{tool}==", lock, re.M)]


def test_every_rule_that_is_ignored_for_some_files_has_its_reason_in_the_same_line():
    text = (ROOT / "pyproject.toml").read_text("utf-8").partition("[tool.ruff.lint.per-file-ignores]")[2]
    ignored = tomllib.loads(f"[files]{text}")["files"]
    lines = re.findall(r'^ +"(\w+)", +# \w.*$', text, re.M)
    assert lines == [rule for rules in ignored.values() for rule in rules]


def test_the_makefile_says_in_one_list_which_targets_are_commands():
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.M)[1].split()
    assert set(phony) == TARGETS


def lines_of_code(path):
    """How many lines of a module are neither blank nor part of a comment, a docstring or an import."""
    text = path.read_text("utf-8")
    apart = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            apart.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        number not in apart and bool(line.strip()) and not line.strip().startswith("#") for number, line in lines
    )


@pytest.mark.parametrize(
    "path", sorted((ROOT / "src" / "refold" / "adapt").glob("[a-z]*.py")), ids=lambda path: path.stem
)
def test_an_adapter_has_at_most_80_lines_of_code(path):
    assert lines_of_code(path) <= 80
