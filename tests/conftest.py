"""Settings for property tests: few examples by default, many with HYPOTHESIS_PROFILE=full."""

import os
import signal

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("full", max_examples=300, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# a run in the background may ignore these, and the commands that it starts would inherit that
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)
