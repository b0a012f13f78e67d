"""Options of stages and selectors that cannot be are refused when the value is made."""

import pytest

from refold.core.edits import Hide
from refold.errors import BadBudget
from refold.stages.clear import Clear
from refold.stages.fit import Fit
from refold.stages.selectors import KeepRatio, KeepTokens, LargestThenOldest
from refold.stages.slide import Slide
from refold.stages.truncate import Truncate
from refold.stages.truncate_new import TruncateNew
from refold.stages.truncate_to_goal import TruncateToGoal


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Slide("m", share=1.5), "share=1.5"),
        (lambda: Slide("m", first=-1), "first=-1"),
        (lambda: Fit(keep_until=2.0), "keep_until=2.0"),
        (lambda: Truncate(head=-0.1), "head=-0.1"),
        (lambda: TruncateNew(tokens=0), "tokens=0"),
        (lambda: TruncateToGoal(floor=-5), "floor=-5"),
        (lambda: Clear("gone", keep=-1), "keep=-1"),
        (lambda: KeepRatio(ratio=30), "ratio=30"),
        (lambda: KeepTokens(share=-1.0), "share=-1.0"),
        (lambda: LargestThenOldest(keep_share=25), "keep_share=25"),
    ],
)
def test_an_option_out_of_range_is_refused_by_name(make, named):
    with pytest.raises(BadBudget, match=named):
        make()


def test_a_hide_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one message"):
        Hide(())
