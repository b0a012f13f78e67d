import pytest

from refold import _samples, formats
from refold._condense.transcript_text import serialize
from refold.summaries._secrets import REMOVED, without_secrets

HEX = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
LONG = "AbCd1234EfGh5678IjKl9012MnOp3456"  # invented, as all that follows
SECRETS = [
    ("sk-ant-" + f"api03-{LONG}", "{}"),
    ("sk-" + f"proj-{LONG}_{LONG}", "export OPENAI_API_KEY={}, then go on"),
    ("sk-" + HEX, "the key is {}."),
    ("sk-or-" + f"v1-{HEX}{HEX}", '"key": "{}"'),
    ("AK" + "IA1234567890ABCDEF", "aws id {}"),
    ("wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = {}"),
    ("gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a", "use {} (read only)"),
    ("github" + "_pat_11ABCDEFG0123456789_abcdefghij", "{}"),
    ("glpat" + "-ABCDEFGHIJ1234567890", "PRIVATE-TOKEN: {}"),
    ("xoxb" + "-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx", "{}"),
    ("AIza" + "SyA1234567890abcdefghijklmnopqrstuv", "key={}&q=1"),
    ("sk" + "_live_4eC39HqLyjWDarjtT1zdp7dc", "Stripe: {}"),
    ("hf" + "_AbCdEfGhIjKlMnOpQrStUvWxYz12345678", "HF_TOKEN={}"),
    ("npm" + "_abcdefghijklmnopqrstuvwxyz0123456789", "//registry/:_authToken={}"),
    ("hunter2", "postgres://admin:{}@db.internal:5432/app"),
    ("Sup3rS3cret!", "DB_PASSWORD={}"),
    ("hunter2abc", '{{"user": "a", "password": "{}"}}'),
    (HEX, '{{\\"api_key\\": \\"{}\\"}}'),
    ("abc.def1234567890.ghi", "Authorization: Bearer {}"),
    ("ey" + "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36", "jwt {}"),
    ("MIIEpAIBAAKCAQEA7bq", "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----"),
    ("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "-----BEGIN OPENSSH PRIVATE KEY-----\\n{}"),
    ("s3cr3tpw", "curl -u admin:{} https://example.org"),
]
NO_SECRETS = [
    "550e8400-e29b-41d4-a716-446655440000",
    "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "/usr/lib/python3.11/site-packages/secrets/api_key1.py:88",
    "password = get_password(user)",
    "private readonly secret: Uint8Array;",
    "api_key=os.environ['OPENAI_API_KEY']",
    "OPENAI_API_KEY=your-api-key-here",
    'api_key="<YOUR_API_KEY>"',
    "sk-...",
    "sk-xxxxxxxxxxxxxxxxxxxx",
    "PASSWORD=${DB_PASSWORD}",
    "postgres://user:password@localhost/db",
    "secret = secrets.token_hex(16)",
    "max_tokens=4096, total_tokens: 123456",
    "toolu_01ABCdefGHI234 answered call_key_abcdef123456",
    "log, err := s.getSessionLogBySessionID(id)",
    "session_id=abc123",
]


@pytest.mark.parametrize(("secret", "around"), SECRETS)
def test_a_known_shape_is_removed_whole_wherever_it_stands(secret, around):
    clean = without_secrets(f"First line.\n{around.format(secret)}\nLast line.")
    assert REMOVED in clean
    assert secret not in clean
    assert secret[len(secret) // 2 :] not in clean
    assert clean.startswith("First line.\n")
    assert clean.endswith("\nLast line.")


@pytest.mark.parametrize("text", NO_SECRETS)
def test_placeholders_ids_hashes_paths_and_code_stay(text):
    assert without_secrets(text) is text


def test_a_token_longer_than_its_rule_leaves_no_rest():
    token = "gh" + "p_" + "a1B2" * 20
    assert without_secrets(f"{token} end") == f"{REMOVED} end"


def test_nothing_is_removed_from_the_sample_conversations():
    for example in _samples.conversations():
        read = formats.read(formats.detect(example.messages), example.messages)
        text = serialize(read.messages)
        assert without_secrets(text) is text


def test_a_text_without_secrets_is_searched_once(monkeypatch):
    text = "\n".join(f"line {number} of a log that nobody has searched before" for number in range(200))
    assert without_secrets(text) is text
    monkeypatch.setattr("refold.summaries._secrets._spans", lambda _: pytest.fail("searched again"))
    assert without_secrets(text) is text
