"""Figures of a running gateway for Prometheus; no text of any request is in them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold.core.plan import Plan
    from refold.gateway.tracks import Tracks
    from refold.limits.usage import Reported

__all__ = ["Metrics"]

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts what a gateway does."""

    def __init__(self, tracks: Tracks) -> None:
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "refold_requests", "Requests by dialect and by what was done", ("dialect", "done"), registry=registry
        )
        self.answers = Counter("refold_answers", "Answers by status", ("dialect", "status"), registry=registry)
        self.compactions = Counter(
            "refold_compactions", "Compactions by policy and cause", ("policy", "cause"), registry=registry
        )
        self.failures = Counter("refold_failures", "Compactions that failed, by reason", ("reason",), registry=registry)
        self.retries = Counter("refold_overflow_retries", "Requests sent again after an overflow", registry=registry)
        self.saved = Counter("refold_tokens_saved", "Tokens that plans took out", registry=registry)
        self.tokens = Counter("refold_tokens", "Tokens that providers reported", ("kind",), registry=registry)
        self.added = Histogram(
            "refold_added_seconds", "Time between a body's end and its sending", registry=registry, buckets=SECONDS
        )
        self.planned = Histogram("refold_compaction_seconds", "A compaction's time", registry=registry, buckets=SECONDS)
        Gauge("refold_conversations", "Conversations in memory", registry=registry).set_function(lambda: len(tracks))
        Gauge("refold_held_bytes", "Bytes of conversations in memory", registry=registry).set_function(
            lambda: tracks.held
        )
        self.recalls = Counter("refold_recalls", "Calls of the recall tool", ("outcome",), registry=registry)
        self._children: dict[tuple[int, tuple[str, ...]], Counter] = {}
        self.total_saved = 0
        self.total_requests = 0
        self.total_compactions = 0

    def page(self) -> bytes:
        """Return the figures in Prometheus's text format."""
        return generate_latest(self._registry)

    def request(self, dialect: str, done: str) -> None:
        """Count a request."""
        self.total_requests += 1
        self._labeled(self.requests, dialect, done).inc()

    def answer(self, dialect: str, status: int) -> None:
        """Count an answer."""
        self._labeled(self.answers, dialect, str(status)).inc()

    def failed(self, reason: str) -> None:
        """Count a compaction that came to nothing."""
        self.failures.labels(reason[:40]).inc()

    def compacted(self, plan: Plan, *, shadow: bool) -> None:
        """Count a plan."""
        self.compactions.labels(plan.policy, "shadow" if shadow else plan.cause.value).inc()
        if not shadow:
            self.total_compactions += 1

    def spared(self, tokens: int) -> None:
        """Count tokens that a request was sent without."""
        self.total_saved += tokens
        self.saved.inc(tokens)

    def recalled(self, outcome: str, count: int) -> None:
        """Count calls of the recall tool: "answered" with originals, or "dropped"."""
        if count:
            self.recalls.labels(outcome).inc(count)

    def reported(self, usage: Reported) -> None:
        """Count a provider's report."""
        for kind, count in (("input", usage.prompt), ("output", usage.completion), ("cached", usage.cached_read)):
            self._labeled(self.tokens, kind).inc(count)

    def _labeled(self, counter: Counter, *labels: str) -> Counter:
        """Return a counter for labels, which takes long to find anew for every request."""
        key = id(counter), labels
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = counter.labels(*labels)
        return found

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """Time a compaction."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.planned.observe(time.perf_counter() - begun)
