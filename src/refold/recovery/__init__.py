"""Recovery: what to do about a request that a provider rejected, and the same request again."""

from refold.recovery._learned_windows import LearnedWindows
from refold.recovery._run import arecovering, recovering

__all__ = ["LearnedWindows", "arecovering", "recovering"]
