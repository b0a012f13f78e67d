import json

import pytest


@pytest.fixture
def tokens(run, tmp_path):
    def ran(*arguments):
        return run("tokens", *arguments, "--token-file", tmp_path / "tokens.jsonl")

    return ran


def test_a_token_is_printed_once_listed_without_its_secret_and_revoked(tokens):
    created = tokens("create", "--team", "research", "--rate", "60", "--max-body", "8M")
    assert created.exit_code == 0
    text = created.stdout.strip()
    id = text.split("_")[1]
    assert f"token {id} of team research" in created.stderr
    assert tokens("create", "--user", "ann").exit_code == 0
    assert tokens("create", "--admin").exit_code == 0
    listed = tokens("list")
    assert text.split("_", 2)[2] not in listed.stdout
    assert all(each in listed.stdout for each in (id, "team research", "user ann", "an administrator", "8,388,608"))
    rows = json.loads(tokens("list", "--json").stdout)
    assert [(row["owner"], row["admin"], row["rate"]) for row in rows] == [
        ("team:research", False, 60), ("user:ann", False, 0), ("", True, 0),
    ]  # fmt: skip
    assert not [name for row in rows for name in row if "hash" in name]
    assert tokens("revoke", id).exit_code == 0
    assert id not in tokens("list").stdout


@pytest.mark.parametrize(("arguments", "words"), [
    (["create"], "--user NAME"), (["create", "--user", "a", "--admin"], "--team NAME"),
    (["create", "--team", "a b"], "no name"), (["create", "--user", ""], "no name"),
    (["create", "--admin", "--max-body", "lots"], "8M"), (["create", "--admin", "--rate", "0"], "--rate"),
    (["revoke", "none"], "refold tokens list"),
])  # fmt: skip
def test_what_makes_no_token_is_told_in_one_line(tokens, arguments, words):
    done = tokens(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_tokens_are_told_with_how_to_make_one(tokens):
    assert "refold tokens create" in tokens("list").output


def test_keys_and_tokens_in_force_are_named_and_not_shown(run, tmp_path):
    (tmp_path / "key").write_text("sk-secret\n")
    done = run(
        "serve", "--check", "--store", "memory", "--anthropic-key-file", tmp_path / "key",
        env={"REFOLD_OPENAI_KEY": "sk-other", "REFOLD_ADMIN_TOKEN": "hush"},
    )  # fmt: skip
    assert done.exit_code == 0
    assert {"key for openai", "key for anthropic"} <= {line.split("  ")[0] for line in done.stdout.splitlines()}
    assert not [secret for secret in ("sk-secret", "sk-other", "hush") if secret in done.output]


@pytest.mark.parametrize("way", [["--check"], ["--workers", "2"], ["--port", "0"]])
@pytest.mark.parametrize("option", ["--tls-certificate", "--token-file"])
def test_files_that_cannot_be_used_are_told_before_anything_is_served(run, tmp_path, way, option):
    (tmp_path / "broken").write_text("broken\n")
    more = ["--tls-key", tmp_path / "broken"] if option == "--tls-certificate" else []
    done = run("serve", "--store", tmp_path / "g.db", option, tmp_path / "broken", *more, *way)
    assert (done.exit_code, done.stdout) == (2, "")
    assert str(tmp_path / "broken") in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_file_of_tokens_that_cannot_be_read_is_told_wherever_the_gateway_listens(run, tmp_path, host):
    place = tmp_path / ("x" * 300)
    done = run("serve", "--check", "--store", "memory", "--host", host, "--token-file", place)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "tokens" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("way", [["--check"], ["--workers", "2"], ["--port", "0"]])
@pytest.mark.parametrize("kind", ["missing", "empty", "revoked"])
def test_a_gateway_that_could_let_nobody_in_is_not_started(run, tokens, tmp_path, way, kind):
    place = tmp_path / "tokens.jsonl"
    if kind == "empty":
        place.touch()
    if kind == "revoked":
        tokens("revoke", tokens("create", "--admin").stdout.split("_")[1])
    serve = ("serve", "--store", tmp_path / "g.db", "--token-file", place, *way)
    for reason, variables in (["--require-token"], {}), ([], {"REFOLD_OPENAI_KEY": "sk-1"}):
        done = run(*serve, *reason, env=variables)
        assert (done.exit_code, done.stdout) == (2, "")
        assert str(place) in done.stderr
        assert "refold tokens create" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_gateway_that_lets_one_token_in_is_started_whether_it_is_of_the_file_or_of_the_environment(
    run, tokens, tmp_path
):
    check = ("serve", "--check", "--store", "memory", "--require-token")
    for name in "REFOLD_ADMIN_TOKEN", "REFOLD_GATEWAY_TOKEN":
        assert run(*check, env={name: "chosen by a person"}).exit_code == 0
    assert tokens("create", "--team", "red").exit_code == 0
    assert run(*check, "--token-file", tmp_path / "tokens.jsonl").exit_code == 0


def test_a_key_file_without_a_key_is_named(run, tmp_path):
    (tmp_path / "key").write_text("\n")
    done = run("serve", "--check", "--store", "memory", "--openai-key-file", tmp_path / "key")
    assert (done.exit_code, "--openai-key-file" in done.stderr) == (2, True)
