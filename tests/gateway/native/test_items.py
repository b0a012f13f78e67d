"""A sealed reference is opened by its store and its owner alone."""

import pytest

from refold._gateway.native.items import Reference, Sealer
from refold.core.messages import MessageId

REFERENCE = Reference("conv_1", "conv_1", 3, MessageId("b2:tip"), ("plan:1",), "alice", "what was said")


def test_a_reference_is_opened_again():
    assert Sealer("", b"salt").opened(Sealer("", b"salt").sealed(REFERENCE), "alice") == REFERENCE


@pytest.mark.parametrize(("secret", "salt", "owner"), [
    ("", b"salt", "bob"), ("", b"salt", ""), ("", b"other", "alice"), ("key", b"salt", "alice"),
])  # fmt: skip
def test_another_owner_or_store_cannot_open_it(secret, salt, owner):
    assert Sealer(secret, salt).opened(Sealer("", b"salt").sealed(REFERENCE), owner) is None


@pytest.mark.parametrize(
    "text", ["", "refold-compaction-1.", "refold-compaction-1.gAAAA", "refold-compaction-1.\udc80"]
)
def test_what_is_no_reference_is_not_opened(text):
    assert Sealer("", b"salt").opened(text, "alice") is None
