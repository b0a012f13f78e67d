"""What holds of every healthy request: no rule finds fault, a repair changes nothing, a compaction keeps it valid."""

import pytest

import refold
from refold import formats, policies
from refold.testing import judge
from tests.depth import DEEP
from tests.healthy.conversations import CORPORA, PLACES, around, attempt, faults
from tests.healthy.failing import COMPACTED, UNHARMED, UNJUDGED

over_formats = pytest.mark.parametrize("format", list(CORPORA))
SHARES = {"beginning": 0.3, "middle": 0.6, "end": 0.3}  # of the messages, that may stay


def over_features(failing):
    """Return a mark that runs a test on every feature, strictly failing for those listed."""
    return pytest.mark.parametrize(
        ("format", "feature"),
        [
            pytest.param(
                format,
                feature,
                id=(name := f"{format}-{feature.name}"),
                marks=[pytest.mark.xfail(reason=failing[name])] if name in failing else [],
            )
            for format, corpus in CORPORA.items()
            for feature in corpus.FEATURES
        ],
    )


def over_all(failing):
    """Return a mark that runs a test on all features of a format at once, strictly failing for those listed."""
    return pytest.mark.parametrize(
        "format",
        [
            pytest.param(format, marks=[pytest.mark.xfail(reason=failing[format])] if format in failing else [])
            for format in CORPORA
        ],
    )


def summary(need):
    return f"GOAL: find the slowest stage.\nDONE: {len(need.messages)} messages were here."


def messages_of(format, body):
    return formats.open_body(formats.find(format), body).messages


def everything(format):
    """Return the corpus of a format as a feature of its own."""
    corpus = CORPORA[format]
    (first, *_) = corpus.FEATURES
    return first._replace(name="everything", body=corpus.EVERYTHING)


def unharmed(format, feature):
    messages = messages_of(format, feature.body)
    assert refold.violations(messages, format=format) == ()
    if f"{format}-{feature.name}" not in UNJUDGED:
        assert not judge.problems(format, feature.body, model=feature.model)
    result = refold.repair(messages, format=format)
    assert result.plan.empty
    assert all(new is old for new, old in zip(result.messages, messages, strict=True))


def compacted(format, feature, number=None):
    """Compact conversations with a feature; return how many were compacted and what went wrong.

    With a number, each policy meets the feature at one place, with a summarizer or without, which go around with the
    number; else at every place and in both ways.
    """
    done, wrong = 0, []
    known = faults(format, feature.body, feature.model)
    bodies = {place: around(format, feature, place) for place in PLACES}
    # some things may stand only at the end
    allowed = [place for place in PLACES if not faults(format, bodies[place], feature.model) - known]
    assert allowed, "the feature can stand nowhere in a long conversation"
    for order, policy in enumerate(policies.names()):
        turn = None if number is None else number + order
        for place in allowed if turn is None else [allowed[turn % len(allowed)]]:
            body = bodies[place]
            for summarize in (None, summary) if turn is None else [(None, summary)[turn % 2]]:
                found = attempt(format, body, feature.model, policy, SHARES[place], summarize, known)
                done += found.result is not None
                way = f"{place}, {policy}, {'with' if summarize else 'no'} summarizer"
                wrong += [f"{way}: {why}" for why in found.wrong]
    return done, wrong


@over_features(UNHARMED)
def test_a_healthy_request_breaks_no_rule_and_a_repair_gives_the_same_objects_back(format, feature):
    unharmed(format, feature)


@over_features(COMPACTED)
def test_a_compaction_of_a_long_conversation_with_a_feature_is_valid_and_keeps_state(format, feature):
    done, wrong = compacted(format, feature, None if DEEP else CORPORA[format].FEATURES.index(feature))
    assert not wrong
    assert done, "no policy compacted it"


@over_all(UNHARMED)
def test_all_features_at_once_break_no_rule_and_a_repair_changes_nothing(format):
    unharmed(format, everything(format))


@over_all(COMPACTED)
def test_a_compaction_of_all_features_at_once_is_valid_and_keeps_state(format):
    done, wrong = compacted(format, everything(format))
    assert not wrong
    assert done


@over_formats
def test_names_are_unique_and_every_feature_has_its_source(format):
    features = CORPORA[format].FEATURES
    assert len({feature.name for feature in features}) == len(features)
    assert all(feature.source.startswith("https://") and feature.model for feature in features)
