"""Acts on a store's sessions: each asks once with its cost, is recorded with who did it, and can be undone."""

import re

import pytest

from refold._page.access import StartToken
from refold._page.app import page_app
from refold._page.conversations import Conversations
from refold.sessions import MemoryStore, Session, open_store
from refold.sessions._leases import compaction_lease
from tests.page.conftest import opened, working


@pytest.fixture
def talk():
    """A session without a compaction, on a page of its own."""
    return Talk(MemoryStore())


class Talk:
    def __init__(self, store):
        self.store = store
        session = Session(store, "work", policy="refold", window=64_000, model="gpt-4o")
        session.append(working(24))
        self.page = opened(store)

    @property
    def session(self):
        return Session(self.store, "work")

    def ask(self, path, status=200, **query):
        answer = self.page.client.get(f"/c/work/{path}", params=query)
        assert answer.status_code == status, answer.text
        return answer.text

    def do(self, path, status=303, **query):
        """Ask, and submit the form of the question."""
        asked = self.ask(path, **query)
        form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', asked.rpartition("<form")[2]))
        answer = self.page.client.post(f"/c/work/{path}", data=form, follow_redirects=False)
        assert answer.status_code == status, answer.text
        return answer

    def undo(self):
        """Undo the newest act that can be undone."""
        step = re.search(r"/c/work/undo\?step=(\d+)", self.page.client.get("/c/work").text)[1]
        return self.do("undo", step=step)

    def compact(self):
        return self.do("compact", preview="1")


def test_a_focus_may_be_as_long_in_any_script(talk):
    talk.do("compact", preview="1", focus="字" * 4_000)


def test_a_preview_tells_what_a_compaction_does_and_when_it_pays_and_changes_nothing(talk):
    before = talk.store.load("work").head
    text = talk.ask("compact", preview="1", goal="9000", focus="the parser")
    assert re.search(r"<strong>[\d,]+</strong> → <strong>[\d,]+</strong> tokens", text)
    assert re.search(r"(selected|pointer|cleared|left out)</span> \d", text)
    assert re.search(r"It saves from call <strong>\d+</strong> on", text)
    assert "the parser</textarea>" in text
    assert talk.store.load("work").head == before


def test_a_compaction_is_recorded_with_who_made_it_and_can_be_undone_and_done_again(talk):
    answer = talk.compact()
    assert answer.headers["location"] == "/c/work#acts"
    [plan] = talk.session.plans
    assert talk.store.load("work").entries[-1].entry.by == "start"
    talk.undo()
    assert talk.session.plans == ()
    assert talk.session.view() == talk.session.messages
    talk.undo()
    assert talk.session.plans == (plan,)


def test_the_history_says_that_the_policy_made_a_compaction_that_nobody_asked_for(talk):
    talk.session.compact(force=True)
    talk.session.rewind(0)
    acts = talk.page.client.get("/c/work").text.partition('<table class="acts">')[2].partition("</table>")[0]
    rewound, compacted = acts.partition("<tbody>")[2].split("<tr>")[1:]
    assert "not recorded" in rewound
    assert "compacted by refold" in compacted
    assert "the policy<" in compacted


def test_a_rewind_says_what_comes_back_and_what_the_cache_loses(talk):
    talk.compact()
    [plan] = talk.session.plans
    text = talk.ask("rewind", plan=plan.id)
    assert "Take this compaction back?" in text
    assert re.search(r"[\d,]+ tokens of originals come back", text)
    assert "written to it again" in text.replace("\n", " ")
    talk.do("rewind", plan=plan.id)
    assert talk.session.plans == ()
    talk.ask("rewind", 409, plan=plan.id)


def test_a_rewind_to_a_message_leaves_the_later_ones_in_the_store_until_it_is_undone(talk):
    ids = talk.session.ids
    text = talk.ask("rewind", message=ids[9])
    assert f"{len(ids) - 10} later messages leave the conversation" in text
    talk.do("rewind", message=ids[9])
    assert talk.session.ids == ids[:10]
    talk.undo()
    assert talk.session.ids == ids
    talk.ask("rewind", 404, message="b2:nothing")


def test_a_pin_is_kept_by_the_next_compaction_and_can_be_undone(talk):
    session = talk.session
    talk.do("pin", message=session.ids[3])
    text = talk.page.client.get("/c/work?show=originals").text
    assert "pinned</span>" in text
    talk.compact()
    after = talk.session
    assert after.messages[3] in after.view()
    talk.do("rewind", plan=after.plans[-1].id)
    talk.do("pin", message=session.ids[3], off="1")
    assert talk.session.pinned == ()
    talk.undo()
    assert talk.session.pinned == (session.ids[3],)


def test_the_policy_is_changed_and_changed_back(talk):
    assert "opal" in talk.ask("policy", policy="opal")
    talk.do("policy", policy="opal")
    assert talk.session.policy.name == "opal"
    talk.undo()
    assert talk.session.policy.name == "refold"
    talk.ask("policy", 400, policy="/etc/passwd.py")


@pytest.mark.parametrize("path", ["compact", "rewind", "pin", "policy", "undo"])
def test_a_form_that_this_page_did_not_write_changes_nothing(talk, path):
    before = talk.store.load("work").head
    client, data = talk.page.client, {"policy": "opal", "message": talk.session.ids[3], "step": "1"}
    assert client.post(f"/c/work/{path}", data=data).status_code == 403
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert client.post(f"/c/work/{path}", data=data, headers=headers).status_code == 403
    assert client.get(f"/c/none/{path}").status_code == 404
    assert talk.page.outsider.post(f"/c/work/{path}", data=data).status_code == 401
    assert talk.store.load("work").head == before


def test_a_conversation_that_another_process_compacts_is_said_to_be_in_use(talk):
    with compaction_lease(talk.store, "work"):
        assert "in use" in talk.do("policy", 409, policy="opal").text
    assert talk.session.policy.name == "refold"


def test_an_act_on_what_has_changed_since_is_refused(talk):
    talk.compact()
    [plan] = talk.session.plans
    question = talk.ask("rewind", plan=plan.id)
    talk.session.rewind(0)
    form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', question.rpartition("<form")[2]))
    assert talk.page.client.post("/c/work/rewind", data=form).status_code == 409


def test_a_store_that_cannot_be_written_says_so_and_stays_as_it_is(tmp_path, monkeypatch):
    from refold.errors import StoreLocked

    with open_store(tmp_path / "s.db") as store:
        talk = Talk(store)

        def locked(*_, **__):
            raise StoreLocked("locked")

        monkeypatch.setattr(store, "write", locked)
        assert "can only be read" in talk.do("policy", 503, policy="opal").text


def test_the_texts_of_an_encrypted_store_are_not_compacted_here():
    store = MemoryStore()
    Session(store, "work", window=32_000).append(working(4))

    class Sealed:
        def opened(self, value):
            return value

        def opened_text(self, text):
            return text

    access = StartToken()
    from starlette.testclient import TestClient

    client = TestClient(page_app(Conversations(store, Sealed()), access, b"key"), base_url="http://127.0.0.1:8788")
    client.get("/", params={"token": access.token})
    assert "of its gateway" in client.get("/c/work/compact?preview=1").text
