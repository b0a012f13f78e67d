import json
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
from click.testing import CliRunner

from refold._cli.main import cli
from refold.errors import OutsideError, UsageError
from refold.replay import _parallel as parallel
from refold.replay._parallel import Job, ReplaySettings, done, replay_all, split
from refold.replay._run import Run
from refold.replay._summary import summed, verdicts
from refold.replay.pricing import CallTokens, Spent
from refold.transcripts import RecordedConversation

POLICIES = ("none", "wolffish", "opal")


def talk(turns=20):
    return [
        {"role": role, "content": f"{role} {number} " + f"word_{number} " * 200}
        for number in range(turns)
        for role in ("user", "assistant")
    ]


def file(folder, name="a.json", turns=20, model="claude-opus-4-5"):
    path = folder / name
    path.write_text(json.dumps({"model": model, "messages": talk(turns)}))
    return path


def job(path, names=POLICIES, turns=20):
    found = RecordedConversation("plain", "anthropic", talk(turns), model="claude-opus-4-5", name="main")
    return Job(found, path.name, str(path), names)


@pytest.fixture
def run(tmp_path):
    def invoke(*args):
        given = [str(arg) for arg in ("replay", *args, "--cache", tmp_path / "kept", "--jobs", "1")]
        result = CliRunner().invoke(cli, given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


def test_a_kept_result_is_read_and_not_made_again(tmp_path, monkeypatch):
    settings = ReplaySettings(window=8_000, keep=str(tmp_path / "kept"))
    one = done(job(file(tmp_path)), settings)
    assert len(list((tmp_path / "kept").iterdir())) == len(POLICIES)
    monkeypatch.setattr(parallel, "replayed", None)
    assert done(job(tmp_path / "a.json"), settings) == one


def test_an_interrupted_run_makes_only_what_is_missing(tmp_path, monkeypatch):
    settings = ReplaySettings(window=8_000, keep=str(tmp_path / "kept"))
    done(job(file(tmp_path), POLICIES[:2]), settings)
    made = []
    real = parallel.replayed
    monkeypatch.setattr(parallel, "replayed", lambda *args, **given: made.append(args[1].name) or real(*args, **given))
    assert [each.policy for each in done(job(tmp_path / "a.json"), settings)] == list(POLICIES)
    assert made == ["opal"]


@pytest.mark.parametrize("change", ["content", "settings", "code", "damage"])
def test_a_result_of_anything_else_is_not_taken(tmp_path, monkeypatch, change):
    settings = ReplaySettings(window=8_000, keep=str(tmp_path / "kept"))
    done(job(file(tmp_path), ("opal",)), settings)
    match change:
        case "content":
            file(tmp_path, turns=19)
        case "settings":
            settings = ReplaySettings(window=9_000, keep=settings.keep)
        case "code":
            monkeypatch.setattr(parallel, "version", lambda: "another")
        case "damage":
            next((tmp_path / "kept").iterdir()).write_bytes(b'{"file":')
    made = []
    real = parallel.replayed
    monkeypatch.setattr(parallel, "replayed", lambda *args, **given: made.append(1) or real(*args, **given))
    done(job(tmp_path / "a.json", ("opal",)), settings)
    assert made == [1]


def test_two_processes_make_what_one_makes(tmp_path):
    jobs = [job(file(tmp_path, f"{number}.json", 20 + number), turns=20 + number) for number in range(2)]
    settings = ReplaySettings(window=8_000)
    assert list(replay_all(jobs, settings, 2)) == list(replay_all(jobs, settings, 1))


def test_the_policies_of_one_conversation_are_shared_out(tmp_path):
    pieces = split([job(file(tmp_path))], 2)
    assert [(place, piece.policies) for place, piece in pieces] == [(0, ("none", "wolffish")), (0, ("opal",))]


def test_one_that_cannot_be_replayed_does_not_stop_the_others(tmp_path):
    short, long = job(file(tmp_path, "s.json", 1), turns=1), job(file(tmp_path))
    one, two = replay_all([short, long], ReplaySettings(window=8_000), 1)
    assert isinstance(one, UsageError)
    assert "too few" in str(one)
    assert [each.policy for each in two] == list(POLICIES)


def test_the_command_prints_costs_and_what_was_kept(run, tmp_path):
    result = run(file(tmp_path), "-w", "8k")
    assert result.exit_code == 0
    for said in ("none", "refold", "claude-code", "US$ in all", "Cost: 1 conversation"):
        assert said in result.output


def test_json_has_every_run_and_the_verdicts(run, tmp_path):
    told = json.loads(run(file(tmp_path), "-w", "8k", "-p", "opal", "-p", "wolffish", "--json").output)
    assert [row["policy"] for row in told["policies"]] == ["none", "opal", "wolffish"]
    assert len(told["conversations"][0][0]["context"]) == 20
    assert {each["verdict"] for each in told["verdicts"]} == {"not supported"}


def test_formats_may_be_mixed_and_a_short_one_is_named(run, tmp_path):
    file(tmp_path, "a.json")
    file(tmp_path, "b.json", model="gpt-5.5")
    file(tmp_path, "c.json", turns=1)
    result = run(tmp_path, "-w", "8k", "-p", "opal")
    assert result.exit_code == 0
    assert "2 conversations" in result.output
    assert "c.json" in result.stderr
    assert "too few" in result.stderr


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("nobody-knows-this", ("-w", "8k"), "--price-input"),
        ("claude-opus-4-5", ("-w", "8k", "-p", "nothing"), "no policy"),
        ("claude-opus-4-5", ("-w", "0"), "number of tokens"),
    ],
)
def test_wrong_input_ends_with_two_and_names_the_remedy(run, tmp_path, model, options, said):
    result = run(file(tmp_path, model=model), *options)
    assert result.exit_code == 2
    assert said in result.stderr


def made(policy, bill):
    return Run("f", policy, 1, (10, 10), (bill / 2, bill), (), Spent(fresh=bill), CallTokens(20))


def test_the_change_of_the_bill_is_of_the_sums_and_has_an_error():
    runs = [[made("none", 10.0), made("a", 5.0)], [made("none", 30.0), made("a", 27.0)]]
    nothing, row = summed(runs)
    assert (nothing.change.value, row.bill, row.calls) == (0.0, 32.0, 4)
    assert row.change.value == pytest.approx(-0.2)
    assert 0.05 < row.change.error < 0.2


def test_policies_are_told_apart_only_where_the_conversations_agree():
    apart = [[made("none", 9.0), made("a", 5.0 + number / 10), made("b", 8.0)] for number in range(8)]
    (told,) = verdicts(apart)
    assert (told.figure, told.best, told.other, told.verdict) == ("bill", "a", "b", "supported")
    mixed = [[made("none", 9.0), made("a", 5.0 if number % 2 else 8.1), made("b", 6.6)] for number in range(8)]
    assert [each.verdict for each in verdicts(mixed)] == ["not supported"]
    assert [each.verdict for each in verdicts(apart[:1])] == ["not supported"]


def test_a_report_and_its_plots_are_written(run, tmp_path):
    path = file(tmp_path)
    assert run(path, "-w", "8k", "-p", "opal", "--out", tmp_path / "r.html", "--plots", tmp_path / "p").exit_code == 0
    assert "<svg" in (tmp_path / "r.html").read_text()
    assert {each.name for each in (tmp_path / "p").iterdir()} >= {"001-context.svg", "001-cost.svg"}


def test_a_place_that_cannot_be_written_is_refused_before_any_work(run, tmp_path):
    result = run(file(tmp_path), "-w", "8k", "--out", tmp_path / "no" / "r.html")
    assert result.exit_code == 2
    assert "no folder" in result.stderr
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_conversations_are_taken_only_a_few_at_a_time(tmp_path, workers):
    jobs = [job(file(tmp_path, f"{number}.json"), ("none",)) for number in range(20)]
    taken = []

    def coming():
        for each in jobs:
            taken.append(each.file)
            yield each

    results = replay_all(coming(), ReplaySettings(window=8_000, judge=False), workers)
    next(results)
    assert len(taken) < len(jobs)
    assert len(list(results)) == len(jobs) - 1


def test_without_judging_only_costs_are_found(tmp_path):
    found = done(job(file(tmp_path, turns=40), turns=40), ReplaySettings(window=8_000, judge=False))
    judged = done(job(file(tmp_path, turns=40), turns=40), ReplaySettings(window=8_000))
    assert {(each.quality, each.at_sizes, each.limits, each.cycles) for each in found} == {((), (), (), None)}
    assert [each.bill for each in found] == [each.bill for each in judged]
    assert all(each.cycles for each in judged[1:])


def test_a_process_that_is_ended_is_told_in_words(tmp_path, monkeypatch):
    class Broken(ProcessPoolExecutor):
        def submit(self, *args, **options):
            raise BrokenProcessPool("a child process terminated abruptly")

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", Broken)
    with pytest.raises(OutsideError, match="the same command goes on"):
        list(replay_all([job(file(tmp_path))], ReplaySettings(window=8_000), 2))
