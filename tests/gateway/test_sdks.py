import pytest

from tests.gateway.talking import TALKERS, behave, converse

WINDOW = 14_000


def shares(provider, seen):
    """Tokens from the cache and all input tokens, of the requests between compactions."""
    read = total = 0
    plans = [headers.get("x-refold-plan") for headers in seen]
    usages = [each for each in provider.received if each.status == 200]
    for place in range(1, len(plans)):
        if plans[place] == plans[place - 1]:
            read += usages[place].cached
            total += usages[place].tokens
    return read, total


@pytest.mark.parametrize(
    ("streaming", "background"), [(False, False), (True, True)], ids=["whole-before", "streamed-beside"]
)
@pytest.mark.parametrize("talker", TALKERS, ids=lambda talker: talker.wire)
def test_a_conversation_five_times_the_window_meets_no_error(gateway, talker, streaming, background):
    serving, provider = gateway(behave=behave, limit=WINDOW, window=WINDOW, background=background)
    seen = converse(talker(serving.url, streaming), 5 * WINDOW)
    assert {each.status for each in provider.received} == {200}
    assert not [each for each in provider.received if each.violations]
    assert max(each.tokens for each in provider.received) <= WINDOW
    assert len({headers["x-refold-conversation"] for headers in seen}) == 1
    assert len({headers.get("x-refold-plan") for headers in seen}) > 4
    read, total = shares(provider, seen)
    assert read / total > 0.8, f"{read:,} of {total:,}"
