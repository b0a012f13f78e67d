import json

import pytest

from refold.testing.provider import ScriptedProvider

TITLES = ("Goal", "Constraints", "Progress", "Key Decisions", "Next Steps", "Critical Context")
SUMMARY = "\n".join(
    f"## {title}\nThe person counted parts, one after the other. Words had no weight, and none of them was kept for long, for no task was set by anybody so far."
    for title in TITLES
)


@pytest.fixture
def talk(tmp_path):
    lines = [
        {"role": role, "content": f"Part {number}: " + "words of no weight " * 200}
        for number in range(40)
        for role in ("user", "assistant")
    ]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(lines))
    return path


def test_a_model_writes_the_summary_and_its_cost_is_told(run, talk, tmp_path):
    out = tmp_path / "out.json"
    with ScriptedProvider([SUMMARY]) as provider:
        done = run(
            "compact", talk, "-p", "opal", "-w", "20k", "-o", out,
            "--summarizer", "gpt-4o", "--summarizer-url", provider.openai_url,
        )  # fmt: skip
    assert done.exit_code == 0
    assert "The person counted parts" in out.read_text()
    assert "summary by gpt-4o: " in done.output
    assert "US$ " in done.output


def test_nonsense_of_a_model_is_rejected_and_the_policy_goes_on(run, talk):
    with ScriptedProvider(["I'd be happy to help!"]) as provider:
        done = run(
            "plan", talk, "-p", "opal", "-w", "20k", "--summarizer", "m", "--summarizer-url", provider.openai_url
        )
    assert done.exit_code == 0
    assert "was rejected" in done.output


def test_a_model_that_cannot_be_reached_is_told_and_the_policy_goes_on(run, talk, monkeypatch):
    monkeypatch.setattr("refold.clients._retry.time.sleep", lambda seconds: None)
    done = run(
        "compact", talk, "-p", "opal", "-w", "20k", "--summarizer", "m", "--summarizer-url", "http://127.0.0.1:9/v1"
    )
    assert done.exit_code == 0
    assert "summarize: APIConnectionError" in done.output
    assert "[Compacted" in done.output


def test_a_summarizer_may_be_configured(run, talk, tmp_path, monkeypatch):
    with ScriptedProvider([SUMMARY]) as provider:
        monkeypatch.setenv("REFOLD_SUMMARIZER", "gpt-4o")
        monkeypatch.setenv("REFOLD_SUMMARIZER_URL", provider.openai_url)
        assert "The person counted" in run("compact", talk, "-p", "opal", "-w", "20k").output
        monkeypatch.setenv("REFOLD_ENABLE_SUMMARIZATION", "false")
        assert "The person counted" not in run("compact", talk, "-p", "opal", "-w", "20k").output
        assert len(provider.received) == 1


def test_a_summarizer_without_a_key_or_with_a_wrong_address_says_so(run, talk, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    done = run("compact", talk, "-w", "20k", "--summarizer", "gpt-4o")
    assert done.exit_code == 2
    assert "set OPENAI_API_KEY" in done.output
    done = run("compact", talk, "-w", "20k", "--summarizer", "gpt-4o", "--summarizer-url", "localhost")
    assert done.exit_code == 2
    assert "is no base URL" in done.output


def test_policy_windows_and_switches_are_those_that_are_configured(run, talk, monkeypatch):
    monkeypatch.setenv("REFOLD_POLICY", "neurolink")
    monkeypatch.setenv("REFOLD_WINDOWS", '{"mine": 20000}')
    told = run("plan", talk, "-m", "mine").output
    assert "neurolink" in told
    assert "truncate" in told
    assert "opal" in run("plan", talk, "-m", "mine", "-p", "opal").output
    monkeypatch.setenv("REFOLD_ENABLED", "false")
    assert "nothing to do" in run("plan", talk, "-m", "mine").output


def test_a_model_is_sent_secrets_only_where_that_is_said(run, talk, monkeypatch):
    key = "sk-" + "proj-AbCd1234EfGh5678IjKl9012"
    lines = json.loads(talk.read_text())
    lines[0]["content"] += f"The key is {key}."
    talk.write_text(json.dumps(lines))
    with ScriptedProvider([SUMMARY]) as provider:
        given = (
            "compact",
            talk,
            "-p",
            "opal",
            "-w",
            "20k",
            "--summarizer",
            "m",
            "--summarizer-url",
            provider.openai_url,
        )
        run(*given)
        run(*given, "--keep-secrets")
        monkeypatch.setenv("REFOLD_REDACT_SECRETS", "false")
        run(*given)
        sent = [json.dumps(received.body) for received in provider.received]
    assert [key in body for body in sent] == [False, True, True]
    assert "[secret removed]" in sent[0]
