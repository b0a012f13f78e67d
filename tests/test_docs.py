import re
from pathlib import Path

import pytest
import rich_click as click
from click.testing import CliRunner

import refold
from refold import errors, formats, policies, transcripts
from refold._cli.main import cli
from refold.core import events, needs, view
from refold.core.plan import Sizes
from refold.core.policy import Pure, When
from refold.models import provider_errors
from tools import write_docs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def page(name):
    return (DOCS / name).read_text("utf-8")


def unnamed(names, text):
    """Those of the names that do not stand in the text as code."""
    return [name for name in names if not re.search(rf"`[^`\n]*\b{re.escape(name)}\b[^`\n]*`", text)]


def commands():
    top = click.Context(cli, info_name="refold")
    return {name: cli.get_command(top, name) for name in cli.list_commands(top)}


def test_nothing_that_is_made_from_the_code_is_out_of_date():
    stale = [str(path.relative_to(ROOT)) for path, _ in write_docs.outdated()]
    assert not stale, "run python tools/write_docs.py"


def test_the_check_fails_when_a_page_is_out_of_date(monkeypatch, capsys):
    monkeypatch.setattr(write_docs, "outdated", lambda: [(ROOT / "README.md", b"something else")])
    assert write_docs.main(["--check"]) == 1
    assert "README.md" in capsys.readouterr().out
    assert (ROOT / "README.md").read_bytes() != b"something else"


def test_every_policy_has_a_page_a_picture_and_a_row_in_the_readme():
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in policies.names():
        text = page(f"policies/{name}.md")
        assert f"# {name}" in text
        assert "<!-- generated:policy -->" in text
        assert f"pictures/{name}-repair.svg" in text
        assert f"docs/policies/{name}.md" in readme
    assert {path.stem for path in (DOCS / "policies").glob("*.md")} == set(policies.names())


def test_every_policy_page_names_the_steps_of_its_policy_in_words():
    for name in policies.names():
        text = page(f"policies/{name}.md")
        assert not [step.name for step in policies.find(name).steps if f"| {step.name} |" not in text]


def test_every_stage_has_a_section():
    text = page("stages.md")
    used = {type(step.stage).__name__ for name in policies.names() for step in policies.find(name).steps}
    assert not [name for name in used if f"### {name}\n" not in text]


def test_every_option_of_a_stage_is_in_the_table_of_stages():
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^###? |\Z)", page("stages.md"), re.S | re.M))
    for name in policies.names():
        for step in policies.find(name).steps:
            kind = type(step.stage)
            assert not unnamed(kind.__struct_fields__, sections[kind.__name__])


def test_a_stage_asks_for_nothing_only_where_it_is_pure():
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^###? |\Z)", page("stages.md"), re.S | re.M))
    for name in policies.names():
        for step in policies.find(name).steps:
            stated = "Asks for nothing." in sections[type(step.stage).__name__]
            assert stated == isinstance(step.stage, Pure), type(step.stage).__name__


@pytest.mark.parametrize("name", list(commands()))
def test_every_command_and_every_option_is_in_the_page_of_the_command_line(name):
    text = page("cli.md")
    assert f"## {name}\n" in text
    section = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
    options = [opt for each in commands()[name].params if isinstance(each, click.Option) for opt in each.opts]
    assert not [option for option in options if option not in section]


def test_every_error_is_in_the_page_of_errors():
    text = page("errors.md")
    told = text.partition("| error | what to do |")[2]
    assert not unnamed(errors.__all__, text)
    leaves = [name for name in errors.__all__ if not getattr(errors, name).__subclasses__()]
    assert not unnamed(leaves, told)


def test_every_format_is_in_the_page_of_formats_and_has_a_column():
    text = page("formats.md")
    columns = next(line for line in text.splitlines() if line.startswith("| part | openai-chat"))
    assert not unnamed(formats.names(), text)
    assert not [name for name in formats.names() if name not in columns]


def test_every_rule_of_a_format_is_in_the_page_of_formats():
    rules = {rule.name for name in formats.names() for rule in formats.find(name).rules}
    assert not unnamed(rules, page("formats.md"))


def test_every_event_need_cause_and_occasion_is_told():
    assert not unnamed([event.__name__ for event in events.Event.__args__], page("library.md"))
    assert not unnamed([need.__name__ for need in needs.Need.__args__], page("concepts.md"))
    assert not unnamed([*view.Cause, *When], page("concepts.md"))


def test_every_kind_of_transcript_is_told():
    assert not unnamed(transcripts.kinds(), page("transcripts.md"))


def test_every_kind_of_provider_error_and_every_remedy_is_on_its_page():
    assert not unnamed([*provider_errors.Kind.__args__, *provider_errors.Remedy.__args__], page("provider-errors.md"))


def test_every_public_name_is_in_the_page_of_the_library():
    assert not unnamed(refold.__all__, page("library.md"))


def test_every_argument_of_compact_is_in_the_page_of_the_library():
    names = ["messages", *refold.CompactOptions.__optional_keys__]
    assert not unnamed(names, page("library.md").partition("## Arguments of `compact`")[2])


def test_every_field_of_what_comes_back_is_in_the_page_of_the_library():
    told = page("library.md").partition("## Results")[2].partition("\n## ")[0]
    for value in (refold.Result, refold.Plan, refold.Check, Sizes):
        assert not unnamed([value.__name__, *value.__struct_fields__], told)


def terms():
    """The terms of the glossary, row by row."""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page("glossary.md"), re.M)[1:]
    return [row.split(", ") for row in rows if not row.startswith("---")]


def test_the_terms_of_the_glossary_are_sorted_and_each_has_one_line():
    rows = terms()
    assert len(rows) > 50
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    names = [term for row in rows for term in row]
    assert len(names) == len(set(names))


def test_every_term_of_the_glossary_is_used_on_another_page():
    others = "".join(path.read_text("utf-8") for path in PAGES if path.name != "glossary.md").lower()
    assert not [term for row in terms() for term in row if not re.search(rf"\b{term}(s|es|d|ed|ing)?\b", others)]


def test_no_row_of_a_policy_is_named_outside_of_the_pages_of_policies():
    row = re.compile(r"\b[WNOLV]\d\d\b")
    pages = [path for path in PAGES if path.parent.name != "policies"]
    assert not [path.name for path in pages if row.search(path.read_text("utf-8"))]
    for arguments in ([], *([name] for name in commands())):
        shown = CliRunner().invoke(cli, [*arguments, "--help"])
        assert shown.exit_code == 0
        assert not row.search(shown.output), arguments


def test_every_page_is_reached_from_the_readme():
    lists = (ROOT / "README.md", DOCS / "api" / "index.md")
    linked = {(page.parent / target).resolve() for page in lists for target, _ in LINK.findall(page.read_text("utf-8"))}
    assert not [str(path) for path in DOCS.rglob("*.md") if path not in linked]


def test_every_page_is_in_the_navigation_of_the_site():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    pages = re.findall(r"- (?:\w+: )?(\S+\.md)$", navigation, re.M)
    assert len(pages) == len(set(pages))
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} <= set(pages)


LINKED = [*PAGES, ROOT / "changelog.d" / "README.md", *sorted((ROOT / "benchmarks").rglob("README.md"))]


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    for target, anchor in LINK.findall(path.read_text("utf-8")):
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", there.read_text("utf-8"), re.M)
            slugs = {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in slugs, f"{target}#{anchor}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_python_of_a_page_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "session.jsonl").write_text(
        '{"role": "user", "content": "Hello"}\n{"role": "assistant", "content": "Hi"}\n'
    )
    space = {"__name__": "page"}
    for block in BLOCK.findall(path.read_text("utf-8")):
        exec(compile(block, str(path), "exec"), space)


def test_the_loop_of_the_library_page_compacts_once_and_keeps_its_beginning():
    space = {"__name__": "page"}
    loop = next(block for block in BLOCK.findall(page("library.md")) if "before_call" in block)
    exec(compile(loop, "library.md", "exec"), space)
    originals, plans = [], []
    for number in range(60):
        originals += [{"role": "user", "content": f"Part {number}: " + "some words of text " * 1_500}]
        originals += [{"role": "assistant", "content": f"Noted part {number}."}]
        sent = space["before_call"](originals, plans)
        assert refold.count(sent) < 200_000
    assert plans
    assert refold.rewind(originals, plans, to=0) == originals


def test_the_command_lines_of_the_readme_name_commands_and_options_there_are():
    shell = "".join(re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.S | re.M))
    lines = re.findall(r"^refold (\w+)(.*)$", shell, re.M)
    assert len(lines) >= 5
    for name, rest in lines:
        known = {opt for each in commands()[name].params for opt in each.opts}
        assert set(re.findall(r"(?<= )--?[a-z-]+", re.split(r"#| -- ", rest)[0])) <= known


def test_the_pages_say_what_is_here_and_nothing_of_how_it_came_about():
    words = re.compile(r"\b(design\.md|seed-origins|aesthetics\.md|/work/|shared folder)\b", re.I)
    assert not [path.name for path in PAGES if words.search(path.read_text("utf-8"))]


def test_every_picture_is_shown_on_a_page():
    shown = "".join(path.read_text("utf-8") for path in PAGES)
    assert not [path.name for path in (DOCS / "pictures").glob("*.svg") if f"pictures/{path.name})" not in shown]


def test_a_picture_of_the_page_is_there_in_light_and_in_dark_and_has_a_description():
    shown = re.compile(
        r'<picture>\n<source media="\(prefers-color-scheme: dark\)" srcset="(pictures/[\w-]+)-dark\.webp">\n'
        r'<img alt="[^"]{20,}" src="(pictures/[\w-]+)-light\.webp">\n</picture>'
    )
    pairs = [match.groups() for path in PAGES for match in shown.finditer(path.read_text("utf-8"))]
    assert pairs
    assert all(dark == light for dark, light in pairs)
    names = {f"{name}-{scheme}.webp" for name, _ in pairs for scheme in ("light", "dark")}
    assert {f"pictures/{path.name}" for path in (DOCS / "pictures").glob("*.webp")} == names


def test_a_picture_has_a_title_and_a_description_and_follows_light_and_dark():
    for path in sorted((DOCS / "pictures").glob("*.svg")):
        text = path.read_text("utf-8")
        assert re.search(r"<title[^>]*>[^<]+</title>\n<desc[^>]*>[^<]+</desc>", text)
        assert "prefers-color-scheme:dark" in text
        assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
