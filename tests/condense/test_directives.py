"""Lines that say what is to be done stay first where a long text is cut."""

import pytest

from refold._condense.directives import ranks_of, shortened
from refold._condense.pasted import pasted_spans, without_pasted
from refold._salience.segments import segments

FILLER = "\n".join(f"Then the agent looked at file number {number} and went on." for number in range(40))
RECAP = f"""Analysis:
{FILLER}

1. Primary Request and Intent:
   - Mend the parser

2. Files and Code Sections:
{FILLER}

6. All user messages:
   - "mend the parser, please"

7. Pending Tasks:
   - Rename the option

8. Current Work:
   The lexer is half done.
"""
REQUEST = f"""Mend the parser of this repository.

It was written in a hurry.
{FILLER}

1. Read the grammar first.
2. Keep the error messages.
- Also look at the notes.

```
{FILLER}
```
Tell me when it is done."""


def chars(text):
    return len(text)


def test_of_a_summary_open_work_stays_first_then_what_users_asked():
    text = shortened(RECAP, 420, chars, "recap")
    assert len(text) <= 420
    assert "7. Pending Tasks:\n   - Rename the option" in text
    assert "8. Current Work:\n   The lexer is half done." in text
    assert '"mend the parser, please"' in text
    assert "1. Primary Request and Intent:\n   - Mend the parser" in text


@pytest.mark.parametrize(
    "heading", ["4. Errors and fixes:", "## Failed attempts", "**Lessons learned**", "## 错误与修复"]
)
def test_what_a_summary_says_went_wrong_stays_before_what_it_tells_of_files(heading):
    text = f"## Files\n{FILLER}\n\n{heading}\n- The stash took the work of another agent\n\n## Commands\n{FILLER}"
    assert "The stash took the work" in shortened(text, 240, chars, "recap")


@pytest.mark.parametrize(
    "heading",
    ["## Next Steps", "**Remaining work**", "Nächste Schritte:", "## Prochaines étapes", "Próximos pasos:", "<next_steps>",
     "## Próximos passos", "Da fare:", "## Следующие шаги", "## 次のステップ", "## 下一步", "## 다음 단계"],
)  # fmt: skip
def test_open_work_is_known_by_its_heading_in_ten_languages(heading):
    text = f"{FILLER}\n\n{heading}\n- rename it\n"
    assert "rename it" in shortened(text, 120, chars, "recap")


def test_of_a_request_beginning_numbered_items_and_end_stay_before_prose_and_what_was_pasted():
    text = shortened(REQUEST, 320, chars, "request")
    assert len(text) <= 320
    for line in ("Mend the parser of this repository.", "1. Read the grammar first.", "2. Keep the error messages.",
                 "Tell me when it is done."):  # fmt: skip
        assert line in text
    assert "number 20" not in text


def test_of_instructions_lines_that_limit_stay_first_then_items_under_rules():
    text = f"# Guide\n\n{FILLER}\n\n## Rules\n\n- Use bun.\n- Never push to main.\n\n## Map\n\n- src: code of the parser and of all that it calls\n"
    assert "- Never push to main." in shortened(text, 80, chars, "instructions")
    both = shortened(text, 100, chars, "instructions")
    assert "- Use bun.\n- Never push to main." in both
    assert "src: code" not in both


def test_pinned_sentences_stay_whatever_the_limit_and_each_line_that_stays_is_word_for_word():
    text = shortened(REQUEST, 0, chars, "request", ["Keep the error messages."])
    assert "Keep the error messages." in text
    lines = set(REQUEST.split("\n"))
    assert all(line in lines or "left out …]" in line for line in text.split("\n"))


def test_a_text_within_its_limit_is_the_same():
    assert shortened(REQUEST, len(REQUEST), chars, "request") == REQUEST


def test_segments_have_the_best_rank_of_their_lines():
    pieces = segments(RECAP)
    ranks = ranks_of(RECAP, pieces, "recap")
    best = {rank: RECAP[piece.start : piece.stop] for piece in pieces for rank in [ranks.get(piece.start)]}
    assert "Current Work" in best[1]
    assert ranks[pieces[0].start] == 1  # it says what the text is
    assert all(piece.start not in ranks for piece in pieces[1:3])


def test_what_was_pasted_is_found_once_and_the_rest_is_left():
    text = "Mend it.\n```py\n> x\n```\n<log>\nfailed\n</log>\nThanks."
    assert [text[start:stop] for start, stop in pasted_spans(text)] == ["```py\n> x\n```", "<log>\nfailed\n</log>"]
    assert without_pasted(text).split() == ["Mend", "it.", "Thanks."]


def test_of_what_was_pasted_into_a_request_words_come_before_code():
    text = f"Mend this.\nIt is bad.\nSee:\n<issue>\n```\n{FILLER}\n```\nThe parser stops at a comma.\n</issue>\nThanks.\nAnn"
    assert "The parser stops at a comma." in shortened(text, 160, chars, "request")


def test_of_a_request_its_headings_and_what_stands_below_a_prohibition_stay_before_prose():
    rule = "-" * 40
    parts = [
        f"{rule}\nTASK {n} {name}\n{rule}\n\nWhat to look at:\n{FILLER}" for n, name in enumerate(("AUDIT", "COPY"), 1)
    ]
    text = "\n\n".join(
        ["Go through the shop.", *parts, "Do NOT:\nstart the server\npush", FILLER, "Report at the end."]
    )
    short = shortened(text, 700, chars, "request")
    assert "TASK 1 AUDIT" in short
    assert "TASK 2 COPY" in short
    assert "Do NOT:\nstart the server\npush" in short
