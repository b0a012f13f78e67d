"""Figures of a running gateway for Prometheus; no text of any request is in them."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import defaultdict
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from refold._gateway.observability.logs import log_event
from refold.stages.truncate_new import TruncateNew

if TYPE_CHECKING:
    from collections.abc import Iterator

    from refold._gateway.conversations.tracker import ConversationTracker
    from refold._gateway.observability.shared_figures import SharedFigures
    from refold._gateway.server.asgi import BodyMemory
    from refold.core.plan import Plan
    from refold.models._usage_report import UsageReport

__all__ = ["NEW_OUTPUT", "NOTHING", "Metrics", "reason_of"]

NOTHING = "nothing to compact"
NEW_OUTPUT = "new-output"  # what a plan is reported as that cut new output alone

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
KINDS = ("input", "output", "cached")  # tokens that a provider reports


def reason_of(plan: Plan) -> str:
    """Return what a plan is reported as: its cause, or that it cut new output alone."""
    alone = plan.steps and all(record.stage == TruncateNew.__name__ for record in plan.steps)
    return NEW_OUTPUT if alone else plan.cause.value


class Times(Collector):
    """A histogram of seconds that costs every request next to nothing: it is summed up when somebody asks."""

    def __init__(self, name: str, documentation: str) -> None:
        self._name = name
        self._documentation = documentation
        self._counts = [0] * (len(SECONDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Take a time."""
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self._sum += seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield the figures as Prometheus has them."""
        bounds = [*(str(float(bound)) for bound in SECONDS), "+Inf"]
        buckets = list(zip(bounds, accumulate(self._counts), strict=True))
        yield HistogramMetricFamily(self._name, self._documentation, buckets=buckets, sum_value=self._sum)


class Metrics:
    """Counts what a gateway does; what every request counts is kept aside until somebody asks."""

    def __init__(self, tracker: ConversationTracker, bodies: BodyMemory) -> None:
        self.shared: SharedFigures | None = None
        registry = self._registry = CollectorRegistry()
        self.requests = Counter(
            "refold_requests", "Requests by dialect and by what was done", ("dialect", "done"), registry=registry
        )
        self.responses = Counter("refold_responses", "Responses by status", ("dialect", "status"), registry=registry)
        self.errors = Counter(
            "refold_errors", "Errors of the gateway itself, by code", ("provider", "code"),
            registry=registry,
        )  # fmt: skip
        self.compactions = Counter(
            "refold_compactions", "Plans made active, by policy and cause", ("policy", "cause"), registry=registry
        )
        self.failures = Counter(
            "refold_compaction_failures", "Compactions that failed, by reason", ("reason",), registry=registry
        )
        self.retries = Counter("refold_overflow_retries", "Requests sent again after an overflow", registry=registry)
        self.reasoning_retries = Counter(
            "refold_reasoning_retries", "Requests sent again after an error about reasoning", registry=registry
        )
        self.saved = Counter("refold_tokens_saved", "Tokens that plans removed from requests", registry=registry)
        self.tokens = Counter("refold_tokens", "Tokens that providers reported", ("kind",), registry=registry)
        self.overhead = Times("refold_overhead_seconds", "Seconds from the end of a request body to its sending")
        registry.register(self.overhead)
        self.planned = Histogram(
            "refold_compaction_seconds", "Seconds of a compaction", registry=registry, buckets=SECONDS
        )
        Gauge("refold_conversations", "Conversations in memory", registry=registry).set_function(lambda: len(tracker))
        Gauge(
            "refold_thrashing_conversations", "Conversations in memory that are compacted too often", registry=registry
        ).set_function(lambda: sum(each.thrashing is not None for each in tracker.all()))
        Gauge("refold_conversation_bytes", "Bytes of conversations in memory", registry=registry).set_function(
            lambda: tracker.size
        )
        Gauge("refold_body_bytes", "Bytes of bodies of requests in memory", registry=registry).set_function(
            lambda: bodies.size
        )
        self.thrashes = Counter(
            "refold_thrashes", "Conversations whose fixed content left so little that they were compacted too often",
            registry=registry,
        )  # fmt: skip
        self.store_failures = Counter("refold_store_failures", "Uses of the store that failed", registry=registry)
        self.store_up = Gauge("refold_store_up", "1 while the store works, 0 while it fails", registry=registry)
        self.store_up.set(1)
        self.unsaved = Gauge(
            "refold_unsaved_conversations", "Conversations with plans that wait for the store", registry=registry
        )
        self.recalls = Counter("refold_recalls", "Calls of the recall tool", ("outcome",), registry=registry)
        self._exchanges: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._tokens = [0, 0, 0]
        self._spared = 0
        self.total_saved = 0
        self.total_requests = 0
        self.total_refused = 0
        self.total_compactions = 0
        self.total_shadows = 0  # plans that were made and not put in force
        self.total_cuts = 0  # plans that cut new output alone

    def share(self, shared: SharedFigures) -> None:
        """Add the figures of other workers to what is told."""
        self.shared = shared

    def page(self) -> bytes:
        """Return the figures in Prometheus's text format, with those of other workers."""
        own = self._own_page()
        if self.shared is None:
            return own
        try:
            return self.shared.summed(own)
        except OSError as error:
            log_event(logging.WARNING, "figures not shared", kind=type(error).__name__)
            return own

    def tell_others(self) -> None:
        """Let other workers know the figures of this one; where that fails, they have those of the last time."""
        if self.shared is not None:
            try:
                self.shared.write(self._own_page())
            except OSError as error:  # a disk that is full for a while
                log_event(logging.WARNING, "figures not shared", kind=type(error).__name__)

    def _own_page(self) -> bytes:
        exchanges, self._exchanges = self._exchanges, defaultdict(int)
        for (dialect, done, status), count in exchanges.items():
            self.requests.labels(dialect, done).inc(count)
            self.responses.labels(dialect, str(status)).inc(count)
        tokens, self._tokens = self._tokens, [0, 0, 0]
        for kind, count in zip(KINDS, tokens, strict=True):
            self.tokens.labels(kind).inc(count)
        spared, self._spared = self._spared, 0
        self.saved.inc(spared)
        return generate_latest(self._registry)

    def exchanged(self, dialect: str, done: str, status: int) -> None:
        """Count a request and the answer that came to it."""
        self.total_requests += 1
        self._exchanges[dialect, done, status] += 1

    def refused(self, provider: str, code: str) -> None:
        """Count a request that is answered with an error of the gateway's own."""
        self.total_refused += 1
        self.errors.labels(provider, code).inc()
        log_event(logging.WARNING, "refused", provider=provider, code=code)

    def failed(self, reason: str) -> None:
        """Count a compaction that came to nothing."""
        self.failures.labels(reason[:40]).inc()
        level = logging.INFO if reason == NOTHING else logging.WARNING
        log_event(level, "compaction failed", reason=reason[:40])

    def store_failed(self) -> None:
        """Count a use of the store that failed."""
        self.store_failures.inc()

    def compacted(self, plan: Plan, cause: str) -> None:
        """Count a plan by its cause: the plan's own, "new-output", "repair", "drop-reasoning" or "shadow"."""
        self.compactions.labels(plan.policy, cause).inc()
        before, after = plan.sizes.before, plan.sizes.after
        log_event(logging.INFO, "compaction", policy=plan.policy, cause=cause, plan=plan.id, before=before, after=after)
        if cause == NEW_OUTPUT:
            self.total_cuts += 1
        elif cause == "shadow":
            self.total_shadows += 1
        elif cause not in ("repair", "drop-reasoning"):
            self.total_compactions += 1

    def spared(self, tokens: int) -> None:
        """Count tokens that a request was sent without."""
        self.total_saved += tokens
        self._spared += tokens

    def recalled(self, outcome: str, count: int) -> None:
        """Count calls of the recall tool: "answered" with originals, "deferred" to the next request, or "dropped"."""
        if count:
            self.recalls.labels(outcome).inc(count)

    def reported(self, usage: UsageReport) -> None:
        """Count a provider's report."""
        tokens = self._tokens
        tokens[0] += usage.prompt
        tokens[1] += usage.completion
        tokens[2] += usage.cached_read

    @contextmanager
    def compacting(self) -> Iterator[None]:
        """Time a compaction."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.planned.observe(time.perf_counter() - begun)
