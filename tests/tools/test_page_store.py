"""The store that `make demo-page` shows."""

from refold._samples import conversations
from refold.sessions import Session, open_store
from tools import page_store


def test_the_samples_are_written_as_sessions_that_were_compacted_on_the_way(tmp_path, monkeypatch):
    mail = next(each for each in conversations() if each.name == "mail")
    monkeypatch.setattr(page_store, "chosen", lambda: [("mailbox", mail, len(mail.messages))])
    page_store.fill(tmp_path / "s.db", 1_000_000.0)
    with open_store(tmp_path / "s.db") as store:
        session = Session(store, "mailbox", must_exist=True)
        assert session.messages == mail.messages
        assert session.plans
        assert session.head.touched > session.head.created > 1_000_000.0
