from base64 import urlsafe_b64encode
from hashlib import scrypt

import pytest
from cryptography.fernet import Fernet

from refold._gateway.conversations.encryption import Seal
from refold.errors import StoreCorrupt


def test_one_secret_makes_another_key_for_every_store():
    one, other = Seal("hush", b"a" * 32), Seal("hush", b"b" * 32)
    closed = one.closed_text("words")
    assert one.opened_text(closed) == "words"
    assert Seal("hush", b"a" * 32).opened_text(closed) == "words"
    with pytest.raises(StoreCorrupt, match="another secret"):
        other.opened_text(closed)


def test_what_was_encrypted_before_stores_had_a_salt_is_still_read():
    key = scrypt(b"hush", salt=b"refold gateway store", n=2**14, r=8, p=1, dklen=32)
    old = "refold-sealed:" + Fernet(urlsafe_b64encode(key)).encrypt(b'"words"').decode()
    assert Seal("hush", b"a" * 32).opened(old) == "words"
    with pytest.raises(StoreCorrupt, match="another secret"):
        Seal("other", b"a" * 32).opened(old)
    with pytest.raises(StoreCorrupt, match="is encrypted"):
        Seal("").opened(old)
