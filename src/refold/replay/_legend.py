"""What each line of the tables on replayed conversations means: in the report, and in the docs."""

from __future__ import annotations

from refold.replay._tables import COST, NAMES

__all__ = ["MEANINGS"]

_COSTS = (
    "plans that changed something",
    "mean of the tokens of the prompts",
    "tokens of the largest prompt",
    "the cost of the calls, each by the longest prefix that is still cached: read, written, other input, output, with "
    "expiry and price steps",
    "requests to a model that the policy would have made for summaries",
    "their cost at the model's prices: all covered messages as uncached input, the summary as output",
    "calls that read content again that the agent used and its view no longer contained",
    "the cost of one more call with the smallest segments that contain it",
    "the total of calls, summaries and repeated reads",
    "the total compared with no compaction, with its standard error",
    "the same if the agent, which saw less, needed so many more calls: a replay cannot know",
    "the cost of cached text that had to be written again because of compactions; included in the total",
    "calls above the window: without compaction they would have failed",
    "provider rules that a compaction violated: always a bug",
)
_QUALITY = {
    "fits": "the share of cuts where a policy met the size; the other figures are over those cuts",
    "used": "the share of the size that was used",
    "recall": "identifiers that the next 80 messages wrote before anything showed them again, and that are still "
    "present, by weight",
    "bound": "recall as a share of the certified bound",
    "recoverable": "recall, plus half of the content that a pointer still refers to",
    "lost": "removed content without a pointer",
    "anchors": "lines that later edits quote, still present word for word",
    "trail": "the share of changed files that are named",
    "trail_precision": "the share of named files that were changed",
    "constraints": "user sentences that forbid, oblige or limit, still present word for word in user messages or notes",
    "copied": "identifiers that occur in the history, that is, were not invented",
    "valid": "results that violate no provider rule: calls and results paired, roles in order",
    "age": "the difference between the ages of preserved and of needed content (total variation over tenths of the "
    "history)",
    "repeated": "runs of five lines that occur twice",
    "density": "weight of needed content in a thousand tokens",
    "planted_once": "planted instructions that are present word for word after the first compaction",
    "planted": "planted instructions that are present word for word after the fifth",
    "own": "the recording's own constraints that are present word for word after the fifth",
    "drift": "the fifth compaction in a row compared with a single one at the same place",
}
MEANINGS = {
    **{measure.name: meaning for measure, meaning in zip(COST, _COSTS, strict=True)},
    **{name: _QUALITY[figure] for figure, (name, _) in NAMES.items()},
}
