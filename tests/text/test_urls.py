import pytest

from refold._text.urls import without_query_secrets, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:hush@host/v1", "https://host/v1"),
        ("me:hush@host", "host"),
        ("http://me:hu?sh@host/v1", "http://host/v1"),
        ("postgresql://db/x?password=hush&sslmode=require", "postgresql://db/x?password=***&sslmode=require"),
        ("https://host/v1?api_key=hush&key=hush&monkey=1&top", "https://host/v1?api_key=***&key=***&monkey=1&top"),
        ("https://host?p%61ssword=hush&sslpassword=hush", "https://host?p%61ssword=***&sslpassword=***"),
        ("http://[::1", "http://[::1"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url, shown):
    assert without_secrets(url) == shown


def test_of_a_url_whose_password_is_hidden_already_the_user_stays():
    assert without_query_secrets("postgresql://me:***@db/x?password=hush") == "postgresql://me:***@db/x?password=***"
