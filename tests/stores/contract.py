"""What every store keeps: one class of tests, run over each of them."""

import asyncio
import json

import pytest

from refold.core.budget import Budget
from refold.core.messages import MessageId
from refold.core.transcript import ROOT
from refold.errors import SessionNotFound, WriteConflict
from refold.sessions import (
    MemoryStore,
    Session,
    export_session,
    get_context_stats,
    import_session,
)
from refold.sessions._entries import (
    Appended,
    Planned,
    Position,
    Renewed,
    Rewound,
    SessionOpened,
    UsageEntry,
)
from refold.sessions._stores.protocol import StoredMessage, Write
from tests.stores.messages import chained, plan_for
from tests.stores.reports import reports


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        self.now += 1
        return self.now


class Contract:
    """Subclasses give the fixture `store`, made with a `Clock`, and `clock`."""

    @pytest.fixture
    def clock(self):
        return Clock()

    @pytest.fixture
    def said(self, store):
        messages = chained("one alpha", "two beta", "three alpha beta")
        head = store.create("a", "openai-chat")
        store.append("a", messages, head.tip)
        return messages

    def kinds(self, store, session="a"):
        return [type(each.entry) for each in store.load(session).entries]

    def test_a_new_session_is_empty_and_begun_once(self, store):
        head = store.create("a", "openai-chat")
        assert (head.id, head.format, head.seq, head.messages, head.tip) == ("a", "openai-chat", 1, 0, ROOT)
        assert store.create("a", "openai-chat") == head
        assert store.load("a").entries[0].entry == SessionOpened("openai-chat")

    def test_messages_come_back_in_order_as_the_very_text_that_was_given(self, store):
        odd = '{ "role":"user",\n "content":"1.10 \\ud83d alone, \\u0000 NUL, \\/ slash, ünïcödé 漢" , "n": 1e3}'
        head = store.create("a", "openai-chat")
        messages = [*chained("x", "y"), StoredMessage(MessageId("b2:odd"), odd, "words")]
        after = store.append("a", messages, head.tip)
        loaded = store.load("a")
        assert loaded.entries[1].entry == Appended(tuple(message.id for message in messages))
        assert [loaded.natives[message.id] for message in messages] == [message.native for message in messages]
        assert (after.messages, after.tip, after.seq) == (3, "b2:odd", 2)

    def test_only_what_is_new_is_loaded(self, store, said):
        more = chained("four", parent=said[-1].id)
        store.append("a", more, said[-1].id)
        loaded = store.load("a", after=2)
        assert [each.seq for each in loaded.entries] == [3]
        assert set(loaded.natives) == {more[0].id}
        assert store.load("a", after=3).entries == ()
        assert [each.seq for each in store.load("a", 0, 2).entries] == [1, 2]

    def test_the_version_of_a_session_changes_with_every_entry(self, store, said):
        assert store.version("b") is None
        head = store.create("a", "openai-chat")
        assert store.version("a") == (head.created, head.seq) == (head.created, 2)
        store.report("a", UsageEntry(10))
        assert store.version("a") == asyncio.run(store.aversion("a")) == (head.created, 3)

    def test_the_entries_of_some_kinds_are_read_without_any_message(self, store, said):
        store.report("a", UsageEntry(7))
        store.append("a", chained("four", parent=said[-1].id), said[-1].id)
        every = store.entries("a")
        assert [each.seq for each in every] == [1, 2, 3, 4]
        assert every == store.load("a").entries
        assert [each.seq for each in store.entries("a", ("appended", "reported"), after=2)] == [3, 4]
        assert [each.seq for each in store.entries("a", ("appended",), upto=3)] == [2]
        with pytest.raises(SessionNotFound):
            store.entries("none")

    def test_the_sizes_of_messages_are_read_without_their_text(self, store, said):
        assert store.sizes("a") == {message.id: len(message.native) for message in said}
        with pytest.raises(SessionNotFound):
            store.sizes("none")

    def test_an_unknown_session_is_named(self, store):
        for act in (
            lambda: store.load("nobody"),
            lambda: store.append("nobody", chained("x"), ROOT),
            lambda: store.report("nobody", UsageEntry(1)),
            lambda: store.delete("nobody"),
            lambda: store.lease("nobody", "me", 1),
        ):
            with pytest.raises(SessionNotFound, match="'nobody'"):
                act()

    def test_of_two_writers_on_one_tip_the_second_fails_and_nothing_of_it_is_kept(self, store, said):
        tip = said[-1].id
        store.append("a", chained("mine", parent=tip), tip)
        with pytest.raises(WriteConflict, match="refresh"):
            store.append("a", [*chained("yours", "and more", parent=tip)], tip)
        assert store.load("a").head.messages == 4
        assert not store.search("yours")

    def test_a_plan_is_kept_although_messages_came_meanwhile(self, store, said):
        plan = plan_for(said)
        revision = store.load("a").head.revision
        store.append("a", chained("late", parent=said[-1].id), said[-1].id)
        head = store.record("a", plan, revision)
        assert store.load("a").entries[-1].entry == Planned.of(plan)
        assert (head.messages, head.revision) == (4, 4)

    def test_a_second_plan_on_the_same_revision_fails(self, store, said):
        revision = store.load("a").head.revision
        store.record("a", plan_for(said), revision)
        with pytest.raises(WriteConflict, match="compact again"):
            store.record("a", plan_for(said, hide=2), revision)
        assert self.kinds(store) == [SessionOpened, Appended, Planned]

    def test_a_rewind_meanwhile_makes_a_plan_fail(self, store, said):
        head = store.load("a").head
        store.rewind("a", Position(said[0].id, 1), head)
        with pytest.raises(WriteConflict):
            store.record("a", plan_for(said), head.revision)

    def test_a_rewind_moves_the_tip_and_deletes_nothing(self, store, said):
        head = store.rewind("a", Position(said[0].id, 1), store.load("a").head)
        assert (head.tip, head.messages) == (said[0].id, 1)
        assert len(store.load("a").natives) == 3
        assert store.search("three")
        store.append("a", chained("other way", parent=said[0].id), said[0].id)
        assert self.kinds(store) == [SessionOpened, Appended, Rewound, Appended]

    def test_a_rewind_from_where_the_session_no_longer_is_fails(self, store, said):
        head = store.load("a").head
        store.append("a", chained("late", parent=said[-1].id), said[-1].id)
        with pytest.raises(WriteConflict):
            store.rewind("a", Position(ROOT, 0), head)

    def test_a_message_said_again_after_a_rewind_is_the_same_message(self, store, said):
        store.rewind("a", Position(said[0].id, 1), store.load("a").head)
        head = store.append("a", said[1:], said[0].id)
        assert (head.tip, head.messages) == (said[-1].id, 3)

    def test_a_report_is_kept_whatever_was_written_meanwhile(self, store, said):
        report = UsageEntry(100, 10, 5, covers=3, native={"input_tokens": 95, "deep": [1, {"x": None}]})
        store.report("a", report)
        assert store.load("a").entries[-1].entry == report

    def test_several_writes_are_kept_together_or_not_at_all(self, store, said):
        tip = said[-1].id
        good = chained("good", parent=tip)
        writes = (Write(Appended((good[0].id,)), tuple(good)), Write(UsageEntry(1), tip=tip))
        with pytest.raises(WriteConflict):
            store.write("a", writes)
        assert self.kinds(store) == [SessionOpened, Appended]
        assert store.natives([good[0].id]) == {}
        head = store.write("a", (writes[0], Write(UsageEntry(1), tip=good[0].id)))
        assert (head.seq, head.tip) == (4, good[0].id)

    def test_a_renewed_session_continues_where_the_old_one_was_and_closes_it(self, store, said):
        child = store.record("a", plan_for(said), store.load("a").head.revision, renew="b")
        assert (child.id, child.parent, child.tip, child.messages, child.seq) == ("b", "a", said[-1].id, 3, 1)
        assert store.load("b").entries[0].entry == SessionOpened("openai-chat", "a", 3)
        assert store.load("a").entries[-1].entry == Renewed("b")
        assert store.load("a").head.next == "b"
        with pytest.raises(WriteConflict, match="continues as b"):
            store.append("a", chained("late", parent=said[-1].id), said[-1].id)
        assert store.append("b", chained("on", parent=said[-1].id), said[-1].id).messages == 4

    def test_a_session_is_not_renewed_to_one_that_is_there(self, store, said):
        store.create("b", "openai-chat")
        with pytest.raises(WriteConflict, match="another id"):
            store.record("a", plan_for(said), 0, renew="b")
        assert self.kinds(store) == [SessionOpened, Appended]

    def test_originals_are_found_by_id(self, store, said):
        assert store.natives([said[2].id, MessageId("b2:none"), said[0].id]) == {
            said[2].id: said[2].native,
            said[0].id: said[0].native,
        }
        many = [MessageId(f"b2:{number}") for number in range(2_000)]
        assert list(store.natives([*many, said[1].id])) == [said[1].id]

    def test_a_client_that_sends_everything_again_is_recognized_by_its_messages(self, store, said):
        ids = [message.id for message in said]
        assert store.holder([*ids, MessageId("b2:new")]) == "a"
        assert store.holder([MessageId("b2:new")]) is None
        store.create("b", "openai-chat")
        store.append("b", said[:2], ROOT)
        assert store.holder(ids[:2]) == "b"
        assert store.holder(ids) == "a"

    def test_sessions_of_different_owners_share_nothing_even_where_their_messages_are_equal(self, store, said):
        ids = [message.id for message in said]
        assert store.create("b", "openai-chat", "ann").owner == "ann"
        own = [StoredMessage(said[0].id, '{"role":"user","content":"said by ann alpha"}', "said by ann alpha")]
        store.append("b", own, ROOT)
        assert store.natives(ids[:1]) == {ids[0]: said[0].native}
        assert store.natives(ids, "ann") == {ids[0]: own[0].native}
        assert store.natives(ids, "bob") == {}
        assert store.load("b").natives == {ids[0]: own[0].native}
        assert store.load("a").natives[ids[0]] == said[0].native
        assert (store.holder(ids), store.holder(ids, "ann"), store.holder(ids, "bob")) == ("a", "b", None)
        assert {hit.session: hit.id for hit in store.search("alpha", owner="ann")} == {"b": ids[0]}
        assert {hit.session for hit in store.search("alpha", owner="")} == {"a"}
        assert {hit.session for hit in store.search("alpha")} == {"a", "b"}
        assert store.search("alpha", ["a"], owner="ann") == ()
        assert [head.id for head in store.sessions("ann")] == ["b"]
        assert store.sessions("bob") == ()
        assert len(store.sessions()) == 2
        store.delete("a")
        assert store.natives(ids, "ann") == {ids[0]: own[0].native}
        assert store.create("b", "openai-chat", "bob").owner == "ann"

    def test_a_session_that_continues_another_has_its_owner(self, store):
        said = chained("one")
        store.append("b", said, store.create("b", "openai-chat", "ann").tip)
        assert store.record("b", plan_for(said), 0, renew="c").owner == "ann"
        assert {head.id for head in store.sessions("ann")} == {"b", "c"}

    def test_a_store_has_a_salt_that_stays(self, store):
        assert len(store.salt()) == 32
        assert store.salt() == store.salt()
        assert MemoryStore().salt() != MemoryStore().salt()

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("alpha", ["three alpha beta", "one alpha"]),
            ("beta ALPHA", ["three alpha beta"]),
            ("alph", []),
            ("", []),
            ("?!", []),
            ("tri alpha", []),
        ],
    )
    def test_a_search_finds_messages_with_all_words_newest_first(self, store, said, query, found):
        hits = store.search(query)
        assert [json.loads(hit.native)["content"] for hit in hits] == found
        assert all(hit.session == "a" for hit in hits)

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("see src/foo_bar.py:12", "foo_bar.py"),
            ("see src/foo_bar.py:12", "bar py"),
            ("天気は良いです", "良い"),
            ("Ünïcödé ÄRGER", "ünïcödé ärger"),
            ("it's 'quoted' \"twice\" \\ & | ! <-> * ( )", "quoted TWICE"),
            ("NUL \x00 and \ud83d alone", "alone"),
            ("AND OR NOT NEAR", "and or not near"),
        ],
    )
    def test_words_are_found_in_code_in_scripts_without_spaces_and_beside_odd_signs(self, store, text, query):
        message = StoredMessage(MessageId("b2:it"), json.dumps({"role": "user", "content": text}), text)
        store.create("a", "openai-chat")
        store.append("a", [message], ROOT)
        assert [hit.id for hit in store.search(query)] == ["b2:it"]
        assert store.search(f"{query} absent") == ()

    def test_signs_in_another_order_are_not_found(self, store):
        store.create("a", "openai-chat")
        store.append("a", [StoredMessage(MessageId("b2:it"), "{}", "漢字")], ROOT)
        assert not store.search("字漢")

    def test_words_at_both_ends_of_a_long_message_are_found_together(self, store):
        text = "first " + " ".join(f"filler{number}" for number in range(60_000)) + " last"
        store.create("a", "openai-chat")
        store.append("a", [StoredMessage(MessageId("b2:long"), "{}", text)], ROOT)
        assert [hit.id for hit in store.search("first last filler30000")] == ["b2:long"]

    def test_a_search_looks_in_the_sessions_that_are_named_and_stops_at_its_limit(self, store, said):
        store.create("b", "openai-chat")
        store.append("b", chained("alpha elsewhere"), ROOT)
        assert {hit.session for hit in store.search("alpha", ["b"])} == {"b"}
        assert len(store.search("alpha", ["a", "b"])) == 3
        assert len(store.search("alpha", limit=2)) == 2
        assert store.search("alpha", ["nobody"]) == ()

    def test_sessions_are_listed_the_last_used_first(self, store, said):
        store.create("b", "anthropic")
        assert [head.id for head in store.sessions()] == ["b", "a"]
        store.report("a", UsageEntry(1))
        heads = store.sessions()
        assert [head.id for head in heads] == ["a", "b"]
        assert heads[0].touched > heads[0].created

    def test_deleting_a_session_leaves_what_another_one_holds(self, store, said):
        store.create("b", "openai-chat")
        store.append("b", said[:2], ROOT)
        store.delete("a")
        assert [head.id for head in store.sessions()] == ["b"]
        assert set(store.natives([message.id for message in said])) == {said[0].id, said[1].id}
        assert [hit.id for hit in store.search("alpha")] == [said[0].id]
        store.delete("b")
        assert store.natives([message.id for message in said]) == {}
        assert store.search("alpha") == ()

    def test_a_session_that_is_continued_is_deleted_after_the_one_that_continues_it(self, store, said):
        store.record("a", plan_for(said), 0, renew="b")
        with pytest.raises(WriteConflict, match="delete that one first"):
            store.delete("a")
        store.delete("b")
        assert store.load("a").head.next == ""
        store.delete("a")
        assert store.sessions() == ()

    def test_one_holder_at_a_time_has_the_lease(self, store, said, clock):
        store.lease("a", "elsewhere/1/x", 60)
        with pytest.raises(WriteConflict, match="elsewhere/1/x"):
            store.lease("a", "elsewhere/2/y", 60)
        store.lease("a", "elsewhere/1/x", 60)
        store.release("a", "elsewhere/2/y")
        with pytest.raises(WriteConflict):
            store.lease("a", "elsewhere/2/y", 60)
        assert store.leased("a")
        store.release("a", "elsewhere/1/x")
        assert not store.leased("a")
        store.lease("a", "elsewhere/2/y", 60)

    def test_a_lease_ends_by_itself(self, store, said, clock):
        store.lease("a", "elsewhere/1/x", 60)
        clock.now += 61
        store.lease("a", "elsewhere/2/y", 60)

    def test_a_clock_that_is_set_back_does_not_make_a_lease_longer(self, store, said, clock):
        store.lease("a", "elsewhere/1/x", 60)
        clock.now -= 3_600
        store.lease("a", "elsewhere/2/y", 60)
        with pytest.raises(WriteConflict, match="elsewhere/2/y"):
            store.lease("a", "elsewhere/1/x", 60)

    def test_the_time_of_a_store_is_that_of_its_clock(self, store, clock):
        clock.now = 5_000.0
        assert store.now() == 5_001.0

    def test_an_id_of_a_provider_stays_with_whoever_claimed_it_first(self, store):
        store.claim(["1", "2"], "team:red")
        store.claim(["2", "3"], "team:blue")
        assert store.owners(["1", "2", "3", "4"]) == {"1": "team:red", "2": "team:red", "3": "team:blue"}
        many = [f"{number}" for number in range(10, 1_210)]
        store.claim(many, "")
        assert store.owners(many) == dict.fromkeys(many, "")
        assert store.owners([]) == {}

    def test_an_id_of_a_provider_is_forgotten_when_it_was_not_used_for_long(self, store, clock):
        store.claim(["used", "unused", "foreign"], "team:red")
        clock.now += 100
        store.claim(["used"], "team:red")
        store.claim(["foreign"], "team:blue")  # which is no use by its owner
        store.drop_claims(clock.now - 50)
        assert store.owners(["used", "unused", "foreign"]) == {"used": "team:red"}

    def test_a_write_is_tried_and_leaves_nothing(self, store, said):
        before = store.load("a"), store.sessions()
        store.check_write()
        assert (store.load("a"), store.sessions()) == before

    def test_a_store_can_be_used_in_a_with_block(self, store):
        with store as opened:
            assert opened is store

    @pytest.mark.parametrize(
        "report", reports(), ids=lambda report: f"{type(report).__module__}.{type(report).__name__}"
    )
    def test_a_usage_report_is_kept_as_the_sdk_gave_it(self, store, report):
        session = Session(store, "s", format="openai-chat", window=8_000)
        session.append([{"role": "user", "content": "Hello."}])
        session.view()
        billed = session.report(report)
        assert (billed.prompt, billed.completion, billed.cached) == (120, 30, 20)
        kept = [each.entry for each in store.load("s").entries if isinstance(each.entry, UsageEntry)]
        assert (kept[0].prompt, kept[0].completion, kept[0].cached) == (120, 30, 20)
        assert "said" not in json.dumps(kept[0].native)
        again = Session(store, "s")
        assert again.billed == billed
        other = MemoryStore()
        import_session(other, export_session(store, "s"))
        assert Session(other, "s").billed == billed

    def test_settings_are_remembered_for_whoever_opens_the_session_next(self, store):
        tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
        given = {"policy": "opal", "model": "gpt-4o", "budget": Budget(9_000, 1_000), "goal": 0.4, "system": "Be brief.",
                 "tools": tools, "max_output": 700, "counter": "exact"}  # fmt: skip
        first = Session(store, "s", format="openai-chat", **given)
        first.append([{"role": "user", "content": "Hello. " * 400}])
        second = Session(store, "s")
        assert second.policy.name == "opal"
        assert second.context_window == 9_000
        assert second.get_context_stats() == first.get_context_stats()
        assert get_context_stats(store, "s") == first.get_context_stats()
        assert second.plan(force=True) == first.plan(force=True)
        third = Session(store, "s", window=20_000)
        assert third.context_window == Session(store, "s").context_window == 20_000
        assert Session(store, "s").policy.name == "opal"
        first.refresh()
        assert first.context_window == 9_000  # what it was given itself wins
        second.refresh()
        assert second.context_window == 20_000
        other = MemoryStore()
        import_session(other, export_session(store, "s"))
        assert Session(other, "s").get_context_stats() == second.get_context_stats()

    def test_settings_go_on_with_a_session_that_is_renewed(self, store):
        session = Session(store, "s", format="openai-chat", policy="vibe", window=3_000)
        session.append([{"role": role, "content": "words " * 300} for role in ("user", "assistant") * 4])
        done = session.compact(force=True)
        assert done.previous == "s"
        assert Session(store, done.session).policy.name == "vibe"
        assert Session(store, done.session).context_window == 3_000
        assert Session(store, "s", window=5_000).context_window == 5_000  # an ended session is only read
