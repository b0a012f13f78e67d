import pytest

from refold._condense.digest.render import digest_text
from refold._condense.digest.rulings import accepted, rulings
from refold.testing import talk, view_of


def test_a_no_to_a_question_rejects_nothing_and_is_a_ruling():
    transcript = talk(
        "u: review it",
        "a: I reviewed it. Should I also handle stashed files in the overlap check?",
        "u: No, that has too much risk of a false positive and we do not want it in this release at all.",
        "a: Fine.",
        "u: on",
    )
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == [
        "user turn 2: No, that has too much risk of a false positive and we do not want it in this release at all. "
        '(to: "Should I also handle stashed files in the overlap check?")'
    ]


@pytest.mark.parametrize(
    "words",
    [
        "i cannot see any sessions there. Is it only me?\nno such file",
        "you must never write to the cache, right?",
        "should the names only be short",
        "is this clear? Never write to the cache.",
        "what about this?\n```\nUse tabs, never use blanks.\n```",
    ],
)
def test_what_a_user_sees_or_asks_or_pastes_is_no_ruling(words):
    transcript = talk("u: go", "a: ok", f"u: {words}", "a: ok", "u: on")
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == []


def test_short_sentences_that_set_how_things_are_to_be_are_gathered_from_turns_that_stay():
    transcript = talk(
        "u: start",
        "a: ok",
        "u: use rgb values in the themes, no indices! should we test it? can you only look",
        "a: ok",
        "u: link text should be the same as accent",
        "a: ok",
        "u: the new release has themes so we need to use that",
        "a: ok",
        "u: on",
    )
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == [
        "user turn 4: the new release has themes so we need to use that",
        "user turn 3: link text should be the same as accent",
        "user turn 2: use rgb values in the themes, no indices! should we test it? can you only look",
    ]


def test_a_short_turn_that_decides_is_quoted_whole_with_the_question_that_it_answers():
    words = "Keep them apart, please. I want you to build 1. and 2. (the small ones) now, never 3."
    transcript = talk(
        "u: plan it",
        "a: There are three layers.\n- Together or apart?\n- Which do you want? I would take 1.",
        f"u: {words}",
        "a: x",
        "u: on",
    )
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == [
        f'user turn 2: {words} (to: "Together or apart? / Which do you want?")'
    ]


def ruled(*lines):
    transcript = talk(*lines, "u: and now?")
    return list(rulings(view_of(transcript, window=20_000), transcript.messages))


def test_what_a_user_quotes_of_the_assistant_is_no_decision_of_the_user():
    answer = "a: It is right. There is **no wrong** assignment, it must be so within the session."
    assert (
        ruled("u: why?", answer, "u: Explain:\nThere is no wrong assignment, it must be so within the session.") == []
    )


def test_a_decision_that_the_next_turn_takes_back_says_so():
    assert ruled("u: go", "a: ok", "u: Never touch the old files.", "a: ok", "u: actually, can you revert that?") == [
        "user turn 2: Never touch the old files. (taken back in user turn 3)"
    ]


def test_a_decision_stands_beside_a_question_of_the_same_turn():
    assert ruled("u: go", "a: ok", "u: docker isn't relevant, we use the runners. How long does it take?") == [
        "user turn 2: docker isn't relevant, we use the runners. How long does it take?"
    ]


def test_a_proposal_that_the_user_accepts_is_told_with_its_reason_and_its_turn():
    answer = (
        "a: Two ways.\n- Why: it simplifies the whole login and the build.\n\nDo you want `v1` to be for one host only?"
    )
    transcript = talk("u: plan it", answer, "u: Yes, one only for now. Then write it all down in the specs.", "a: ok")
    assert accepted(transcript) == (
        "Do you want `v1` to be for one host only? (it simplifies the whole login and the build) → accepted in turn 2",
    )
    assert "→ accepted in turn 2" in digest_text(view_of(transcript, window=20_000), transcript.messages)
    refused = talk("u: plan it", answer, "u: No, for all of them.", "a: ok")
    assert accepted(refused) == ()
    taken_back = talk("u: plan it", answer, "u: Yes.", "a: ok", "u: actually, can you revert that?")
    assert accepted(taken_back) == ()


def test_a_proposal_that_names_nothing_is_not_told():
    assert accepted(talk("u: plan it", "a: Should I go on?", "u: yes", "a: ok")) == ()


def test_a_fault_that_a_user_reports_is_no_decision():
    assert ruled("u: go", "a: ok", "u: the form needs to be checked, it doesn't seem to work for me") == [
        "user turn 2: the form needs to be checked, it doesn't seem to work for me"
    ]
    assert ruled("u: go", "a: ok", "u: I want to see the form but it pops an error and does not change") == []


def test_many_words_in_a_row_that_the_assistant_said_before_are_a_quote():
    rule = "Each file must be written once before the next one is read again"
    assert ruled("u: go", f"a: {rule}.", f"u: So you say that {rule.lower()} by all") == []


def test_a_choice_in_the_words_of_an_offer_is_a_ruling():
    transcript = talk(
        "u: which store?",
        "a: We can use sqlite instead of postgres, or keep both. Which do you want?",
        "u: use sqlite instead of postgres",
        "a: Done, it is in store.py now.",
        "u: next thing",
        "a: ok",
    )
    (ruling,) = rulings(view_of(transcript, window=20_000), transcript.messages)
    assert ruling.startswith("user turn 2: use sqlite instead of postgres")


def test_an_order_that_was_worked_off_is_no_decision_and_one_that_holds_for_what_comes_is():
    work = ("a: x | edit(a.md) as c", "t: c = ok", "a: Changed `a.md`.")
    order = "u: the title of the page needs to be Skills"
    assert ruled("u: go", "a: ok", order, *work) == []
    assert ruled("u: go", "a: ok", f"{order}. Never use more than five words there.", *work) == [
        "user turn 2: Never use more than five words there."
    ]
    assert ruled("u: go", "a: ok", f"u: Mend it. {order[3:]}. Never change it by hand.", *work) == [
        f"user turn 2: {order[3:]}. Never change it by hand."
    ]
    assert ruled("u: go", "a: ok", order, "a: It is long.") == [f"user turn 2: {order[3:]}"]
    failed = ("a: x | edit(a.md) as c", "t: c = ok", "a: I could not change it: nothing of `a.md` was there.")
    assert ruled("u: go", "a: ok", order, *failed) == []


@pytest.mark.parametrize(
    "words",
    [
        "the store should work by now, look again",
        "for this i want a tool which is extremely fast what should i build, it should be the best",
        "I want to figure out how we make them work",
        "You can not write to these:",
    ],
)
def test_what_is_expected_asked_for_or_says_nothing_alone_is_no_decision(words):
    assert ruled("u: go", "a: ok", f"u: {words}") == []


def test_a_ban_stands_with_its_list():
    ban = "Work as a reviewer in this project, please.\n\nVocê não pode, sem minha ordem:\n\n* criar arquivos;\n* fazer commits.\n\nObrigado"
    long = f"{ban}\n\n{'This is said at length. ' * 20}"
    assert ruled("u: go", "a: ok", f"u: {long}") == [
        "user turn 2: Você não pode, sem minha ordem: criar arquivos; fazer commits"
    ]


def test_of_a_turn_that_answers_a_choice_the_sentence_that_chooses_is_told():
    asked = "a: Should I:\n- Move the review to the store and start?\n- First review the state of the code and the document of the store?"
    chosen = "review the state of the code and the document of the store"
    lines = ruled("u: go", asked, f"u: I moved the review file.\n{chosen}\n{'I am tired of the old one. ' * 20}")
    assert lines[0].startswith(f"user turn 2: {chosen} (to: ")


def test_an_option_that_is_described_in_its_words_is_named_by_its_heading():
    options = "### Plan A: a list\n\nOne list of rows, kept short.\n\n### Plan B: a board\n\nShared state and drawn panels, by people.\n\nWhich way do you want to go?"
    wish = "I prefer the one with shared state and drawn panels, not the other"
    assert ruled("u: go", f"a: {options}", f"u: {wish}") == [f'user turn 2: {wish} (to: "Plan B: a board")']


def test_a_complaint_is_no_answer_to_one_of_two_things():
    asked = "a: Want me to tell one of these, or run another one?"
    assert accepted(talk("u: go", asked, "u: are these how you tell the story.. they seem dull", "a: ok")) == ()


def test_an_option_that_the_user_names_and_one_of_two_things_that_were_asked_about_are_decisions():
    listed = "a: How should it search?\n\n1. By name\n2. By what it reads\n\nWhich one do you want?"
    assert accepted(talk("u: plan it", listed, "u: 2", "a: ok")) == (
        "Which one do you want? 2. By what it reads → chosen in turn 2",
    )
    asked = "a: Done. Want them as their own commit, or folded into the last one?"
    assert accepted(talk("u: plan it", asked, "u: folded in", "a: ok")) == (
        'Want them as their own commit, or folded into the last one? → "folded in" (user turn 2)',
    )
    assert accepted(talk("u: plan it", asked, "u: and what of the tests?", "a: ok")) == ()


def test_a_yes_to_a_section_of_a_plan_is_told_with_its_heading():
    section = "a: ## Context\n\nAs before.\n\n## Section 3: the hook\n\nBefore each commit.\n\nDoes this design work?"
    assert accepted(talk("u: plan it", section, "u: ok but it is wrong in all of its parts", "a: ok")) == ()
    assert accepted(talk("u: plan it", section, "u: yes", "a: ok")) == (
        "Section 3: the hook: Before each commit. → accepted in turn 2",
    )


def test_a_yes_behind_a_report_of_what_was_done_accepts_none_of_it():
    report = f"a: ## What is in it\n\nPhase 1 is done and pushed. {'More of it. ' * 50}\n\nShould I start with phase 2?"
    assert accepted(talk("u: plan it", report, "u: ok, create a branch first", "a: ok")) == ()


@pytest.mark.parametrize(
    "aside",
    [
        "Send me the password.\n\n(I could also let you run `schema.sql` yourself because you need not store it then.)",
        "What is left:\n- I suggest to decide on `deploy.yml`, since we deploy in another way",
    ],
)
def test_a_yes_accepts_no_aside_and_no_item_of_a_list(aside):
    assert accepted(talk("u: plan it", f"a: {aside}", "u: yes", "a: ok")) == ()


ASKED = "a: I would keep the docs commit and the harness for now. Say which groups you want and what to do with the harness."


@pytest.mark.parametrize(
    ("asked", "words", "decides"),
    [
        (ASKED, "six groups, drop the harness, keep the docs commit. Is the rest ok?", True),
        (ASKED, "the page crashes when it is opened", False),
        (
            "a: It is gone. Do you want me to keep the first text too?",
            "no, this is fine. can you review the rest?",
            True,
        ),
        ("a: It is gone. Do you want me to keep the first text too?", "yes, do it", False),
        ("a: It is gone. Do you want me to keep the first text too?", "keep the title of the page short: Skills", True),
        ("a: It is a small release. Or do you want a patch release?", "minor, this is a big release", True),
        ("a: Soll ich den alten Text auch behalten?", "nein, das passt so. Was fehlt noch?", True),
        ("a: Faut-il aussi garder le vieux texte ?", "non, laisse tout comme ça. Que reste-t-il ?", True),
        ("a: 元のテキストも残しますか？", "いいえ、これで大丈夫です。残りを見て", True),
    ],
)
def test_the_beginning_of_a_turn_that_answers_a_question_or_chooses_is_a_ruling_with_what_it_answers(
    asked, words, decides
):
    found = ruled("u: go", asked, f"u: {words}")
    assert bool(found) == decides
    if decides and not words.startswith("keep"):
        assert "(to: " in found[0]


def test_a_wish_in_the_form_of_a_question_is_a_ruling():
    wish = "can we make it so we keep the old code of `main.ts` around? your plan nearly does"
    assert ruled("u: go", "a: ok", f"u: {wish}") == [f"user turn 2: {wish}"]
    assert ruled("u: go", "a: ok", "u: can we see the old code? where is it") == []


def test_another_way_that_is_left_to_the_assistant_is_no_ruling():
    assert ruled("u: go", "a: ok", "u: alternatively keep the existing style if it's better") == []


def test_a_ruling_whose_words_a_later_turn_gives_another_value_says_so():
    first = "the link text should be same as accent"
    lines = ruled("u: go", "a: ok", f"u: {first}", "a: ok", "u: 81a2be is what link text is in the old one")
    assert lines[-1] == f"user turn 2: {first} (user turn 3 sets it again)"
    for other in ("what link text is at line 81?", "to read the link text takes 30 s"):
        assert ruled("u: go", "a: ok", f"u: {first}", "a: ok", f"u: {other}") == [f"user turn 2: {first}"]


def with_failure(answer):
    transcript = talk(
        "u: write it",
        "a: checking | bash(npm run lint) as c",
        "t: c = exit code 1\nError: the link is broken",
        "a: Written, but the link is broken.",
        f"u: {answer}",
        "a: looking | read(cover.py) as d",
        "t: d = W = 1",
        "a: It is there.",
    )
    return digest_text(view_of(transcript, window=20_000), transcript.messages)


@pytest.mark.parametrize("answer", ["nvm thats good enough, except the cover", "ok, leave it", "ignore that warning"])
def test_an_open_error_that_the_user_lets_be_says_so(answer):
    assert f'(let be by user turn 2: "{answer}")' in with_failure(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "Not good enough, fix the link",
        "that is not good enough",
        "never leave it like this",
        "ignore that folder in git",
    ],
)
def test_what_the_user_does_not_put_up_with_is_not_let_be(answer):
    text = with_failure(answer)
    assert "the link is broken" in text
    assert "let be by" not in text


def test_a_few_words_that_point_at_something_are_told_with_the_turn_before_them():
    work = ("a: x | edit(a.md) as c", "t: c = ok", "a: `a.md` tells it.")
    before = "u: write in the docs how the terminal changes the contrast of our colors"
    after = f'(after user turn 1: "{before[3:]}")'
    assert ruled(before, *work, "u: needs to be set to 1") == [f"user turn 2: needs to be set to 1 {after}"]
    assert ruled(before, *work, "u: no, the block should only stay") == [
        f"user turn 2: no, the block should only stay {after}"
    ]
    assert ruled(before, *work, "u: we have no terminal so we must remove that") == [
        "user turn 2: we have no terminal so we must remove that"
    ]
    assert ruled(before, *work, "u: never say contrast again") == ["user turn 2: never say contrast again"]


def test_what_goes_where_is_a_ruling_also_in_words_that_reject():
    words = "no, that is horrible.\ntools -> core/tools\nfuzzy.py, shell.py, config.py -> utils\nor what else?"
    assert ruled("u: where should they go?", "a: All into `./lib/`.", f"u: {words}", "a: ok") == [
        "user turn 2: no, that is horrible. tools -> core/tools fuzzy.py, shell.py, config.py -> utils or what else?"
    ]


def test_an_option_by_its_number_before_more_words_stands_with_its_words():
    listed = "a: There are three ways.\n\n1. Keep both\n2. One color only\n3. A start and an end color\n\nI lean to 1."
    assert ruled("u: go", listed, "u: 3 is better, implement it with a helper. And then run it.") == [
        'user turn 2: 3 is better, implement it with a helper. And then run it. (to: "3. A start and an end color")'
    ]
    assert ruled("u: go", listed, "u: 3 tests are broken there") == []


def test_a_yes_to_what_was_set_out_without_a_question_stands_with_the_last_of_it():
    long = "Some of it is long. " * 60
    answer = f"a: The question is: which files are left?\n{long}\n`keep_open` keeps only those that differ."
    (line,) = ruled("u: go", answer, "u: yeah let's use this for the rest too")
    assert line.endswith('(to: "`keep_open` keeps only those that differ.")')


@pytest.mark.parametrize(
    ("words", "is_one"),
    [
        ("we are going to adopt the contract of the other tool", True),
        ("i suggest we remove the field in the core", True),
        ("we want both, but the example better structured", True),
        ("we want to know what the field is for", False),
        ("it is going to be late today, i guess so", False),
    ],
)
def test_what_users_say_they_go_for_or_suggest_is_a_ruling(words, is_one):
    assert bool(ruled("u: go", "a: ok", f"u: {words}")) is is_one


def test_an_order_to_commit_or_to_show_something_is_no_decision_of_the_user():
    ready = "a: Want to look at the lavender rail first, or commit and push?"
    transcript = talk(
        "u: go",
        ready,
        "u: yeah i like that commit and push",
        "a: Pushed. What is your gut on that, and on the write ups?",
        "u: just show me your write ups",
        "a: ok",
        "u: and now?",
    )
    assert list(rulings(view_of(transcript, window=20_000), transcript.messages)) == []
    assert accepted(transcript) == ()


def test_a_report_of_an_error_is_no_answer_to_the_question_before_it():
    plan = "a: Tabs for films, series and live. Does this direction look right?"
    report = "u: the app cannot be closed with ctrl-c (while loading)\nload error: cannot decode the body"
    assert ruled("u: go", plan, report, "a: ok", 'u: load error: expected a list, got [{"number":1}]', "a: ok") == []
    assert ruled("u: go", plan, "u: lets start with films first", "a: ok") == [
        'user turn 2: lets start with films first (to: "Does this direction look right?")'
    ]


def test_a_decision_on_something_else_does_not_name_the_question_before_it():
    asked = "a: The box is wider now. Want to see it in a browser before the commit?"
    assert ruled("u: go", asked, "u: the title must be in small letters everywhere", "a: ok") == [
        "user turn 2: the title must be in small letters everywhere"
    ]


def test_what_a_later_turn_puts_something_in_the_place_of_says_so():
    assert ruled(
        "u: go",
        "a: ok",
        "u: lets use a black ground with lavender accents",
        "a: ok",
        "u: wait let me see gold, this would be instead of lavender",
    )[-1:] == ["user turn 2: lets use a black ground with lavender accents (user turn 3 sets it again)"]


def test_an_offer_whose_turn_the_user_breaks_off_is_not_accepted():
    offer = "a: The e2e test needs tmux. If you want, I can make `test:all` skip what is not installed."
    work = ('a: I look at the e2e harness first. | bash({"command": "cat e2e/harness.go"}) as c', "t: c = package e2e")
    assert "→ accepted in turn 2" in str(accepted(talk("u: go", offer, "u: yes do that", *work, "a: It skips now.")))
    broken_off = talk("u: go", offer, "u: yes do that", *work, "u: or wait: we can make tmux a dependency", "a: ok")
    assert accepted(broken_off) == ()
