import pytest

from refold._text.secrets import holds_secret, names_secret


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "password", "client_secret", "access-token", "token", "DB_PASSWD"]
)
def test_names_of_secrets_are_known(name):
    assert names_secret(name)


@pytest.mark.parametrize("name", ["max_tokens", "keywords", "author", "key", "id", "path"])
def test_names_of_other_things_are_none(name):
    assert not names_secret(name)


@pytest.mark.parametrize(
    "text",
    [
        "sed -i 's/AKIAIOSFODNN7EXAMPLE/x/' a.py",
        "postgres://u:pw@host/db",
        "curl -H 'Authorization: Bearer abcdefgh1'",
        "sk-ant-api03-AAAABBBB",
        "ghp_0123456789abcdef0123",
    ],
)
def test_texts_that_hold_secrets_are_known_by_their_shape(text):
    assert holds_secret(text)


@pytest.mark.parametrize(
    "text", ["sed -i 's/old/new/' a.py", "https://example.com/a?b=c", "sk-learn", "task-runner", "reset your password"]
)
def test_other_texts_hold_none(text):
    assert not holds_secret(text)
