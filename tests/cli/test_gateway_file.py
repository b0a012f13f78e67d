import pytest


@pytest.fixture
def check(run, tmp_path):
    """Write a file and check it; returns the output and the exit code."""

    def checked(text, *arguments, **environment):
        place = tmp_path / "gateway.toml"
        place.write_text(text)
        result = run("serve", "--config", place, *arguments, "--check", env={"REFOLD_GATEWAY_TOKEN": "", **environment})
        return result.output.replace(str(place), "FILE"), result.exit_code

    return checked


WHOLE = """
port = 8790
policy = "vibe"
retention = 7
window = "200k"
memory = 256
recall_tool = true
store = "memory"

[upstreams]
openai = "http://me:hush@127.0.0.1:9/v1"

[models."gpt-4o"]
policy = "opal"
trigger = 0.7
window = 64000

[routes."/v1/messages"]
trigger = "60k"
"""


def rows(text):
    return {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}


def test_what_a_file_says_is_in_force_and_named_as_its_source(check):
    text, code = check(WHOLE)
    assert code == 0
    found = rows(text)
    assert found["port"] == ["8790", "FILE"]
    assert found["openai"] == ["http://127.0.0.1:9/v1", "FILE"]
    assert found["model-policy"] == ["gpt-4o=opal", "FILE"]
    assert found["model-trigger"] == ["gpt-4o=0.7", "FILE"]
    assert found["model-window"] == ["gpt-4o=64000", "FILE"]
    assert found["route-trigger"] == ["/v1/messages=60k", "FILE"]
    assert found["recall-tool"] == ["yes", "FILE"]
    assert found["timeout"] == ["720", "default"]
    assert "hush" not in text


def test_an_option_of_the_command_line_overrides_the_file(check):
    found = rows(check(WHOLE, "--port", "8791", "--model-policy", "gpt-4o=claude-code")[0])
    assert found["port"] == ["8791", "command", "line"]
    assert found["model-policy"] == ["gpt-4o=claude-code", "command", "line"]
    assert found["policy"] == ["vibe", "FILE"]


def test_the_password_of_a_store_and_the_secrets_are_not_shown(check):
    text, code = check("store = 'memory'", REFOLD_GATEWAY_TOKEN="hush-1", REFOLD_STORE_KEY="hush-2")
    assert code == 0
    assert "hush" not in text
    assert rows(text)["REFOLD_GATEWAY_TOKEN"] == ["set", "environment"]
    for place in ("postgresql://me:hush@[::1/db?password=hush", "postgresql://127.0.0.1:9/db?password=hush&user=me"):
        text, code = check(f"store = '{place}'")
        assert code == 2
        assert "hush" not in text
        assert "store" in text


def test_the_options_in_force_show_no_password_of_a_query(monkeypatch, check):
    monkeypatch.setattr("refold._cli.serve._check_files", lambda settings: None)
    text, code = check("store = 'postgresql://db/refold?password=hush&sslmode=require'\nsummarizer = 'm'\n"
                       "summarizer_url = 'https://me:hush@host/v1?api_key=hush'", OPENAI_API_KEY="none")  # fmt: skip
    assert code == 0
    assert "hush" not in text
    assert rows(text)["store"][0] == "postgresql://db/refold?password=***&sslmode=require"
    assert rows(text)["summarizer-url"][0] == "https://host/v1?api_key=***"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "FILE: there is no setting 'prot'; did you mean port?"),
        ("port = 'abc'", "FILE: port: 'abc' is not a valid integer"),
        ("port = 70000", "FILE: port: 70000 is not in the range"),
        ("port = [1]", "FILE: port takes one value, not a list"),
        ("token = 'x'", "FILE: token is a secret: set REFOLD_GATEWAY_TOKEN in the environment"),
        ("store_key = 'x'", "FILE: store_key is a secret: set REFOLD_STORE_KEY in the environment"),
        ("upstreams = 'x'", "FILE: upstreams is a table: write [upstreams]"),
        ("[upstreams]\nopenay = 'http://h'", "there is no provider 'openay'; did you mean openai?"),
        ("[upstreams]\nopenai = 1", "FILE: upstreams.openai takes an address as text"),
        ("[models.m]\nwindo = 1", "FILE: models.m: there is no setting 'windo'; did you mean window?"),
        ("[models]\nm = 1", "FILE: models.m is a table"),
        ("[models.m]\nwindow = 'much'", "--model-window m"),
        ("port = ", "FILE is no TOML"),
        ("policy = 'opall'", "opal"),
        ("[routes.'/v1/x']\npolicy = 'opal'", "there is no route '/v1/x'"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place_and_the_remedy(check, text, said):
    output, code = check(text, "--store", "memory")
    assert code == 2
    assert said in output


def test_a_file_that_is_not_there_is_named(run, tmp_path):
    result = run("serve", "--config", tmp_path / "none.toml", "--check")
    assert result.exit_code == 2
    assert "none.toml: No such file or directory: name a file that can be read" in result.output


def test_the_check_opens_the_store(check, tmp_path):
    (tmp_path / "notes.txt").write_text("no database " * 100)
    output, code = check(f"store = '{tmp_path / 'notes.txt'}'")
    assert code == 2
    assert "is not a database" in output
