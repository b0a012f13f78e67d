from __future__ import annotations

from refold.core.needs import ArchiveNeed, Provided
from refold.core.transcript import Transcript
from refold.stages.archive import Archive
from refold.testing import talk, view_of


def many(count: int = 10) -> Transcript:
    return talk(*[f"{'ua'[n % 2]}: message {n} " + "x" * 80 for n in range(count)])


def test_an_archive_is_asked_for_the_whole_transcript_and_changes_nothing() -> None:
    view = view_of(many())
    assert Archive("log").needs(view) == (ArchiveNeed(view.transcript.messages, "log"),)
    assert Archive().edits(view, (Provided(place="x"),)) == ()
    assert Archive().needs(view_of(Transcript())) == ()
