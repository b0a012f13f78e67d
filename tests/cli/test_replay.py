import builtins
import json
import re

import pytest
from click.testing import CliRunner

from refold._cli.main import cli
from refold.replay import _parallel as parallel


def words(turns=24, model="claude-opus-4-5", big=150):
    messages = [
        {"role": role, "content": f"{role} {number} " + f"word_{number} " * big}
        for number in range(turns)
        for role in ("user", "assistant")
    ]
    return {"model": model, "messages": messages}


def tools(turns=24):
    messages = []
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
        messages += [
            {"role": "user", "content": f"Step {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"row_{number} " * 600},
            {"role": "assistant", "content": f"row_{max(number - 4, 0)} it is."},
        ]
    return {"model": "gpt-5.5", "messages": messages}


def put(folder, name, body):
    path = folder / name
    path.write_text(json.dumps(body))
    return path


@pytest.fixture
def run(tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "here"

    def invoke(*args, keep=kept, **given):
        command = [str(arg) for arg in ("replay", *args, "--cache", keep, "--jobs", "1")]
        result = CliRunner().invoke(cli, command, **given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    invoke.kept = kept
    return invoke


def table(output, title):
    lines = output.split(f"\n{title}\n")[1].split("\n\n")[0].splitlines()
    heads, *rows = [re.split(r"  +", line.strip()) for line in lines]
    return {name: dict(zip(heads, cells, strict=True)) for name, *cells in rows}


def test_the_terminal_shows_recall_at_equal_size_between_the_bound_and_the_floors(run, tmp_path):
    result = run(put(tmp_path, "a.json", tools()), "-w", "8k", "-p", "opal", "-p", "refold")
    found = table(result.output, "Recall at equal size")
    assert list(found)[:2] == ["certified bound", "oracle"]
    assert list(found)[-2:] == ["newest text", "by chance"]
    assert {"opal", "refold"} < set(found)
    assert list(found["refold"]) == ["10% of the history", "25% of the history", "50% of the history"]
    for title in ("Kept of what the rest needed", "Kept at 25% of the history", "Five compactions in a row"):
        assert set(table(result.output, title)["valid"].values()) == {"100.0%"}
    assert table(result.output, "Five compactions in a row")["planted, cycle 5"]["refold"].endswith("100.0%")


def test_sizes_may_be_named_in_tokens_and_shares(run, tmp_path):
    told = json.loads(
        run(
            put(tmp_path, "a.json", tools()), "-w", "8k", "-p", "refold", "--size", "3k", "--size", "0.3", "--json"
        ).output
    )
    assert list(told["limits"]) == ["30%", "3k"] or list(told["limits"]) == ["3k", "30%"]
    refold = told["policies"][1]
    assert 0 < refold["at_sizes"]["3k"]["used"]["value"] <= 1
    assert refold["at_sizes"]["3k"]["recall"]["value"] <= told["limits"]["3k"]["certified"]["value"] + 0.01


def test_a_conversation_without_tool_calls_and_usage_is_replayed(run, tmp_path):
    result = run(put(tmp_path, "a.json", words()), "-w", "8k", "-p", "opal")
    assert result.exit_code == 0
    assert "summaries" in table(result.output, "Cost: 1 conversation, 24 calls")


def test_doing_nothing_can_be_replayed_alone(run, tmp_path):
    result = run(put(tmp_path, "a.json", tools()), "-w", "8k", "-p", "none", "--out", tmp_path / "r.html")
    assert result.exit_code == 0
    assert list(table(result.output, "Cost: 1 conversation, 48 calls")["peak"]) == ["none"]


def test_one_too_short_to_cut_is_priced_and_not_judged(run, tmp_path):
    result = run(put(tmp_path, "a.json", words(3, big=10)), "-w", "8k", "-p", "opal")
    assert result.exit_code == 0
    assert "Cost: 1 conversation, 3 calls" in result.output
    assert "Kept" not in result.output
    assert "Nothing was compacted" in result.output


def test_formats_mixed_in_one_call_are_summed_and_what_cannot_be_replayed_is_named(run, tmp_path):
    put(tmp_path, "a.json", words())
    put(tmp_path, "b.json", tools())
    put(tmp_path, "c.json", words(model="nobody-knows-this"))
    put(tmp_path, "d.json", {"nothing": "here"})
    result = run(tmp_path, "-w", "8k", "-p", "opal")
    assert result.exit_code == 0
    assert "2 conversations, 72 calls" in result.output
    for said in ("c.json", "--price-input", "d.json"):
        assert said in result.stderr
    named = run(
        tmp_path, "-w", "8k", "-p", "opal", "--price-input", "1", "--price-output", "2", "--price-cache-read", "0.1"
    )
    assert "3 conversations" in named.output


def test_an_interrupted_run_goes_on_where_it_was(run, tmp_path, monkeypatch):
    for number in range(3):
        put(tmp_path, f"{number}.json", words(20 + number))
    made = []
    real = parallel.replayed

    def stopping(line, policy, *args, **given):
        made.append(policy and policy.name)
        if len(made) == 4:
            raise KeyboardInterrupt
        return real(line, policy, *args, **given)

    monkeypatch.setattr(parallel, "replayed", stopping)
    stopped = run(tmp_path, "-w", "8k", "-p", "opal")
    assert stopped.exit_code != 0
    assert len(list(run.kept.iterdir())) == 3
    result = run(tmp_path, "-w", "8k", "-p", "opal")
    assert result.exit_code == 0
    assert len(made) == 4 + 3
    whole = run(tmp_path, "-w", "8k", "-p", "opal", keep=run.kept / "other")
    assert result.output == whole.output


def test_pictures_are_written_beside_the_plots(run, tmp_path):
    pytest.importorskip("resvg_py")
    path = put(tmp_path, "a.json", tools())
    assert run(path, "-w", "8k", "-p", "opal", "--plots", tmp_path / "p", "--png").exit_code == 0
    assert {each.name for each in (tmp_path / "p").iterdir()} == {
        f"{name}.{kind}" for name in ("quality-against-cost", "001-context", "001-cost") for kind in ("svg", "png")
    }
    picture = (tmp_path / "p" / "001-context.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000


def test_without_what_draws_pictures_the_run_ends_before_any_work_and_names_it(run, tmp_path, monkeypatch):
    real = builtins.__import__

    def missing(name, *args):
        if name == "resvg_py":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", missing)
    path = put(tmp_path, "a.json", tools())
    result = run(path, "-w", "8k", "-p", "opal", "--plots", tmp_path / "p", "--png")
    assert result.exit_code == 2
    assert "refold[plots]" in result.stderr
    assert not run.kept.exists()
    assert "--plots" in run(path, "--png").stderr


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_narrow_terminal_gets_wide_tables_in_blocks_of_columns(run, tmp_path, columns):
    path = put(tmp_path, "a.json", tools())
    env = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": str(columns)}
    shown = re.sub(r"\x1b\[[0-9;]*m", "", run(path, "-w", "8k", env=env).stdout)
    assert max(map(len, shown.splitlines())) <= columns
    assert "…" not in shown
    blocks = sum("US$ in all" in line for line in shown.splitlines())
    assert (blocks > 1) is (columns < 100)
    for name in ("claude-code", "neurolink", "opal", "refold", "vibe", "wolffish"):
        assert name in shown
