import json

import pytest
from click.testing import CliRunner

from refold._cli.main import cli

USAGE = [(10_000, 0), (11_000, 10_000), (12_000, 0)]


@pytest.fixture
def run():
    def invoke(*args):
        result = CliRunner().invoke(cli, [str(arg) for arg in args])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


def session(path, model="claude-opus-4-5", usage=USAGE):
    lines = []
    for number, (prompt, read) in enumerate(usage):
        counts = {"input_tokens": 0, "cache_read_input_tokens": read, "cache_creation_input_tokens": prompt - read}
        answer = {"id": f"a{number}", "role": "assistant", "content": [{"type": "text", "text": f"answer {number}"}]}
        answer |= {"model": model, "usage": counts | {"output_tokens": 100}}
        lines.append({"type": "user", "message": {"role": "user", "content": f"question {number}"}})
        lines.append({"type": "assistant", "message": answer})
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_a_bill_is_explained_with_its_breaks_and_the_check(run, tmp_path):
    result = run("cost", session(tmp_path / "s.jsonl"))
    assert result.exit_code == 0
    for said in ("read from the cache", "nothing was found", "simulated, with the file's breaks", "+0.00%"):
        assert said in result.output


def test_every_call_is_shown_when_asked_for(run, tmp_path):
    shown = run("cost", session(tmp_path / "s.jsonl"), "--calls").output
    assert "12,000" in shown.split("Calls\n")[1]


def test_json_has_the_calls_the_bill_and_the_breaks(run, tmp_path):
    told = json.loads(run("cost", session(tmp_path / "s.jsonl"), "--json").output)
    assert [call["tokens"]["prompt"] for call in told["calls"]] == [10_000, 11_000, 12_000]
    assert told["breaks"][0]["tokens"] == 11_000
    assert told["bill"]["calls"] == 3


def test_several_files_are_a_table_and_one_without_a_price_is_named(run, tmp_path):
    session(tmp_path / "a.jsonl")
    session(tmp_path / "b.jsonl", model="nobody-knows-this")
    result = run("cost", tmp_path)
    assert result.exit_code == 0
    assert "total of 1" in result.output
    assert "b.jsonl" in result.stderr


def test_an_unknown_price_ends_with_two_and_says_how_to_name_it(run, tmp_path):
    result = run("cost", session(tmp_path / "s.jsonl", model="nobody-knows-this"))
    assert result.exit_code == 2
    assert "--price-input" in result.stderr
    named = ("--price-input", "1", "--price-output", "2", "--price-cache-read", "0.1")
    assert run("cost", tmp_path / "s.jsonl", *named).exit_code == 0


def test_a_model_that_is_named_is_shown_beside_that_of_the_file(run, tmp_path):
    path = session(tmp_path / "s.jsonl", model="claude-opus-4-5")
    assert "claude-opus-4-5, taken as claude-haiku-4-5" in run("cost", path, "-m", "claude-haiku-4-5").output
    assert "taken as" not in run("cost", path).output


def test_a_file_without_usage_ends_with_two(run, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}]))
    result = run("cost", path, "-m", "gpt-5.5")
    assert result.exit_code == 2
    assert "no usage reports" in result.stderr


def long(path):
    usage, before = [], 0
    for number in range(12):
        usage.append((9_000 + 1_000 * number, before))
        before = usage[-1][0]
    session(path, usage=usage)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows):
        if row["type"] == "user":
            row["message"]["content"] = f"question {number} about part_{number} " * 90
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_what_each_policy_would_have_cost_stands_under_the_bill(run, tmp_path):
    result = run("cost", long(tmp_path / "s.jsonl"), "-w", "20k", "-p", "opal", "-p", "refold")
    assert result.exit_code == 0
    table = result.output.split("What each policy would have cost, in US$\n")[1].splitlines()
    assert [line.split()[0] for line in table[1:5]] == ["as", "none", "opal", "refold"]
    told = json.loads(run("cost", tmp_path / "s.jsonl", "-w", "20k", "-p", "opal", "--json").output)["policies"]
    none, opal = told
    assert (none["change"], none["compactions"], none["summary"]) == (0, 0, 0)
    assert opal["compactions"] >= opal["summaries"] / 2 > 0
    assert opal["summary"] > 0
    assert opal["change"] == pytest.approx(opal["bill"] / none["bill"] - 1)


def test_no_policy_is_priced_where_none_is_asked_for_or_it_cannot_be_told(run, tmp_path):
    path = session(tmp_path / "s.jsonl")
    assert "What each policy" not in run("cost", path, "-p", "none").output
    short = session(tmp_path / "short.jsonl", usage=USAGE[:1])
    result = run("cost", short)
    assert result.exit_code == 0
    assert "too few to replay" in result.stderr
    assert run("cost", path, "-p", "nobody").exit_code == 2


def test_it_is_said_where_policies_are_priced_with_a_cache_that_the_recording_did_not_use(run, tmp_path):
    path = long(tmp_path / "s.jsonl")
    told = "The recording used no cache"
    assert told not in run("cost", path, "-w", "20k", "-p", "opal").output
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if row["type"] == "assistant":
            usage = row["message"]["usage"]
            prompt = sum(usage.pop(key) for key in list(usage) if "input" in key)
            usage["input_tokens"] = prompt
    path.write_text("\n".join(map(json.dumps, rows)))
    assert told in run("cost", path, "-w", "20k", "-p", "opal").output
