import pytest

from refold._condense.replaced import replacements
from refold.core.messages import text_of
from refold.stages.fit import Fit
from refold.testing import talk, view_of

PAIRS = [
    ("Use port 8080 for the preview server.", "Use 9090 instead for the preview server."),
    ("Run the nightly report at 18:30.", "I changed my mind about the nightly report: at 21:15, please."),
    ("The window of the report holds 90 days.", "Not 90 but 30 days, for the window of the report."),
    ("Nimm Port 8080 für den Vorschauserver von Kassel.", "Für Kassel nimm beim Vorschauserver stattdessen 9090."),
    ("Prends le port 8080 pour l'aperçu du catalogue.", "Pour l'aperçu du catalogue, prends plutôt 9090."),
    ("Usa el puerto 8080 para la vista previa.", "Para la vista previa usa 9090 en lugar de 8080."),
    ("Для предпросмотра каталога возьми порт 8080.", "Для предпросмотра каталога возьми 9090 вместо 8080."),
    ("预览服务使用端口8080。", "预览服务改为端口9090。"),
    ("プレビューにはポート8080を使ってください。", "プレビューは考え直しました。代わりに9090を使ってください。"),
    (
        "Put the parser into core_parser.py, beside the grammar.",
        "The grammar goes to new_parser.py instead of core_parser.py.",
    ),
]
KEPT = [
    ("Use port 8080 for the preview server.", "Use 4 workers instead for the nightly build."),
    ("Use port 8080 for the preview server.", "The preview server on 8080 answers 200 now."),
    ("Never touch core_parser.py or its grammar.", "I would rather have the grammar documented in README.md too."),
    ("Keep 90 days of the report.", "Show the report instead of a table."),
]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_what_a_later_turn_takes_back_explicitly_is_replaced(before, after):
    transcript = talk(f"u: {before}", "a: yes", "u: Thanks.", "a: yes", f"u: {after}")
    assert [(each.sentence, each.turn) for each in replacements(transcript)] == [(before, 3)]


@pytest.mark.parametrize(("before", "after"), KEPT)
def test_what_is_about_something_else_or_no_change_replaces_nothing(before, after):
    assert not replacements(talk(f"u: {before}", "a: yes", "u: Thanks.", "a: yes", f"u: {after}"))


def compacted(*turns):
    lines = []
    for turn in turns:
        lines += [
            f"u: {turn}",
            *(line for n in range(6) for line in (f"a: next | look(p{n}) as c{n}", f"t: c{n} = {'x y ' * 900}")),
        ]
    view = view_of(talk(*lines, "u: Go on."), window=10**7, goal=10_000)
    after = view.after(Fit().edits(view))
    assert after.tokens <= 10_000
    return [text_of(message) for message in after.messages if message.role == "user"]


def test_a_replaced_sentence_stays_word_for_word_with_a_mark_behind_it():
    turns = (
        "Look around.",
        "Always use port 8080 for the preview. Be quick.",
        "For the preview use 9090 instead of 8080.",
    )
    texts = compacted(*turns)
    assert "Always use port 8080 for the preview.\n[replaced in user turn 3]\nBe quick." in texts
    assert turns[2] in texts


@pytest.mark.parametrize("goal", [11_750, 13_250, 14_750])
def test_a_sentence_has_its_mark_also_where_its_turn_was_cut_or_came_back(goal):
    pasted = "\n".join(f"The preview page {n} should list item number_{n} and also its price_{n}." for n in range(120))
    lines = []
    for turn, said in enumerate(
        (
            "Look around.",
            f"Always use port 8080 for the preview server. Be quick.\n{pasted}",
            "ok go",
            "For the preview server use 9090 instead of 8080.",
        )
    ):
        lines += [f"u: {said}"]
        for n in range(5):
            lines += [
                f"a: next item number_7 | look(p{n}) as c{turn}x{n}",
                f"t: c{turn}x{n} = {'x y ' * 300} number_{n * 7}",
            ]
    view = view_of(talk(*lines, "u: Go on."), window=10**7, goal=goal)
    texts = [text_of(message) for message in view.after(Fit().edits(view)).messages if message.note is None]
    assert [text for text in texts if "8080 for the preview server.\n[replaced in user turn 4]" in text]


def test_a_mark_is_not_put_twice():
    turns = (
        "Look around.",
        "Use port 8080 for the preview.\n[replaced in user turn 3]",
        "For the preview use 9090 instead of 8080.",
    )
    assert turns[1] in compacted(*turns)
