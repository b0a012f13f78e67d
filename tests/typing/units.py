"""Never run, only type-checked: sizes in two units neither add, subtract nor compare.

`warn_unused_ignores` is part of mypy's strict mode, so a line that mypy does not complain about is an error itself.
"""

from typing import assert_type

from refold import Usage
from refold.core.token_units import EstimatedTokens, Ratio, ReportedTokens
from refold.core.usage_gauges import Estimate

REPORTED, ESTIMATED, RATIO = ReportedTokens(26_700), EstimatedTokens(10_000), Ratio(2.67, known=True)

REPORTED - ESTIMATED  # type: ignore[operator]
ESTIMATED - REPORTED  # type: ignore[operator]
REPORTED + ESTIMATED  # type: ignore[operator]
ESTIMATED + REPORTED  # type: ignore[operator]
assert REPORTED > ESTIMATED  # type: ignore[operator]
REPORTED - 10_000  # type: ignore[operator]
Estimate().measure(REPORTED, ESTIMATED, None)  # type: ignore[arg-type]
RATIO.reported(REPORTED)  # type: ignore[arg-type]
RATIO.estimated(ESTIMATED)  # type: ignore[arg-type]

assert_type(REPORTED - ReportedTokens(1), ReportedTokens)
assert_type(REPORTED - RATIO.reported(ESTIMATED), ReportedTokens)
assert_type(RATIO.estimated(REPORTED) - ESTIMATED, EstimatedTokens)
assert_type(Usage(1).reported, ReportedTokens)
