import json

import pytest

from refold._condense.digest.previous import entry
from refold._condense.digest.render import digest_text
from refold._condense.digest.worked_through import WORKED_THROUGH, worked_through
from refold.core._annotations import recovered
from refold.core.transcript import Transcript
from refold.testing import talk, view_of


def looked_up(*ids):
    return [
        line for id in ids for line in (f'a: Next. | customer_get({{"id": "{id}"}}) as c{id}', f"t: c{id} = a customer")
    ]


def lines(view, staying=0):
    messages = view.transcript.messages
    return worked_through(view, messages[: len(messages) - staying], messages[len(messages) - staying :])


def test_calls_of_a_tool_that_works_through_a_list_are_told_newest_first():
    view = view_of(talk("u: Look up all customers.", *looked_up("K1", "K2", "K3", "K4")))
    assert lines(view) == ("turn 1: customer_get: K4; K3; K2; K1",)


def test_calls_that_stay_or_failed_or_were_for_an_earlier_request_are_not_told():
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4", "K5"))), staying=2) == (
        "turn 1: customer_get: K4; K3; K2; K1",
    )
    failed = ['a: Next. | customer_get({"id": "K5"}) as f', "t! f = no such customer"]
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4"), *failed))) == (
        "turn 1: customer_get: K4; K3; K2; K1",
    )
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4"), "a: All are there.", "u: Thanks."))) == ()


@pytest.mark.parametrize("call", ["read(src/{0}.py)", 'bash({{"command": "make {0}"}})', "grep({0})"])
def test_files_commands_searches_and_a_few_calls_are_not_told(call):
    work = [line for n in range(6) for line in (f"a: Next. | {call.format(n)} as c{n}", f"t: c{n} = x")]
    assert lines(view_of(talk("u: All.", *work))) == ()
    assert lines(view_of(talk("u: All.", *looked_up("K1", "K2", "K3")))) == ()


def test_what_an_earlier_digest_tells_is_carried_on_each_call_once():
    first = view_of(talk("u: All.", *looked_up("K1", "K2", "K3", "K4")), goal=4_000)
    digest = digest_text(first, first.transcript.messages[1:])
    assert f"## {WORKED_THROUGH}\n{entry('turn 1: customer_get: K4; K3; K2; K1')}" in digest
    sent = talk("u: All.", f"u: {digest}", *looked_up("K4", "K5"))
    later = view_of(Transcript(tuple(map(recovered, sent.messages))))
    assert lines(later) == ("turn 1: customer_get: K5; K4; K3; K2; K1",)


def called(tool, *arguments, output="a text"):
    made = [(f"c{n}", json.dumps(each)) for n, each in enumerate(arguments)]
    return lines(
        view_of(
            talk(
                "u: All.",
                *(line for id, each in made for line in (f"a: x | {tool}({each}) as {id}", f"t: {id} = {output}")),
            )
        )
    )


def test_calls_that_differ_in_a_number_or_a_later_argument_only_are_told_by_that():
    assert called("mail_read", *({"id": n} for n in range(4))) == ("turn 1: mail_read: 3; 2; 1; 0",)
    issues = ({"owner": "acme", "repo": "app", "number": n} for n in range(4))
    assert called("get_issue", *issues) == ("turn 1: get_issue: 3; 2; 1; 0",)
    pages = ({"url": f"https://example.com/{'a' * 60}/{n}"} for n in range(4))
    assert [word[-2:] for word in called("page_of", *pages)[0].split("; ")] == ["/3", "/2", "/1", "/0"]


def test_a_list_is_told_whole_though_the_user_spoke_in_between_but_for_what_was_interrupted():
    stopped = ['a: Next. | customer_get({"id": "K3"}) as c', "t: c = [Request interrupted by user]"]
    told_of = lines(view_of(talk("u: All.", *looked_up("K1", "K2"), "u: Faster.", *stopped, *looked_up("K4", "K5"))))
    assert told_of == ("turn 2: customer_get: K5; K4", "turn 1: customer_get: K2; K1")


def test_secrets_and_calls_about_nothing_are_not_told():
    logins = [{"api_key": f"key{n}", "user": f"user{n}"} for n in range(4)]
    assert called("login", *logins) == ("turn 1: login: user3; user2; user1; user0",)
    assert called("login", *({"value": f"sk-live-0123456789{n}"} for n in range(4))) == ()
    pages = ({"address": f"https://me:pass@h.io/{n}?api_key=abc"} for n in range(4))
    assert "pass" not in (told := called("page_of", *pages)[0])
    assert "abc" not in told
    ids = [{"id": "K1"}, {}, {"id": "K2"}, {"id": "K3"}, {"id": "K4"}]
    assert called("customer_get", *ids) == ("turn 1: customer_get: K4; K3; K2; K1",)


@pytest.mark.parametrize(
    "output",
    ["Error: no such mail", "error: 404", "Not found", '{"error": "not found"}', '{"ok": false, "error": {"a": 1}}'],
)
def test_calls_whose_output_reads_as_an_error_did_not_go_well(output):
    ids = [{"id": f"K{n}"} for n in range(4)]
    assert called("customer_get", *ids, output=output) == ()
    assert called("customer_get", *ids, output='{"error": null, "name": "x"}') != ()


@pytest.mark.parametrize("tool", ["sequentialthinking", "write_stdin", "bash_output", "wait"])
def test_thoughts_and_waiting_go_through_no_list(tool):
    assert called(tool, *({"text": f"part {n}"} for n in range(4))) == ()


def test_an_argument_that_is_named_as_a_secret_is_no_identifier_to_look_up():
    login = json.dumps({"password": "hunterK77", "user": "bob_K78"})
    transcript = talk("u: All.", f"a: x | login({login}) as c", "t: c = ok", "a: done", "u: on")
    text = digest_text(view_of(transcript), transcript.messages[1:])
    assert "bob_K78" in text
    assert "hunterK77" not in text
