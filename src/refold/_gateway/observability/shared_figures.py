"""The figures of several worker processes as one page: each writes its own to a file, and who is asked adds them up.

What has ended still counts, so that no counter ever falls; only its gauges, which tell of now, are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["SharedFigures", "retire"]

LEAST = ("_created", "refold_store_up")  # ends of names of which the least counts: times, and whether all is well


class SharedFigures:
    """The pages of all workers, in a folder; `own` is the file of this one."""

    def __init__(self, folder: Path, worker: int) -> None:
        self._folder = folder
        self._own = folder / f"{worker}.prom"

    def write(self, page: bytes) -> None:
        """Let the others know this worker's page."""
        new = self._own.with_suffix(".new")
        new.write_bytes(page)
        new.replace(self._own)

    def summed(self, own: bytes) -> bytes:
        """Return this worker's page and those of the others as one."""
        self.write(own)
        registry = CollectorRegistry()
        registry.register(_Sum([file.read_text() for file in sorted(self._folder.glob("*.prom"))]))
        return generate_latest(registry)


def retire(folder: Path, worker: int) -> None:
    """Keep of a worker that has ended what it has counted."""
    file = folder / f"{worker}.prom"
    if file.is_file():
        registry = CollectorRegistry()
        registry.register(_Sum([file.read_text()], without="gauge"))
        SharedFigures(folder, worker).write(generate_latest(registry))


class _Sum(Collector):
    """Adds pages up, sample by sample."""

    def __init__(self, pages: Iterable[str], without: str = "") -> None:
        self._pages = pages
        self._without = without

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with the sums of its samples."""
        families: dict[str, Metric] = {}
        sums: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for page in self._pages:
            for family in text_string_to_metric_families(page):
                if family.type == self._without:
                    continue
                families.setdefault(family.name, family)
                samples = sums.setdefault(family.name, {})
                for sample in family.samples:
                    key = sample.name, tuple(sorted(sample.labels.items()))
                    if key not in samples:
                        samples[key] = sample.value
                    elif sample.name.endswith(LEAST):
                        samples[key] = min(samples[key], sample.value)
                    else:
                        samples[key] += sample.value
        for name, family in families.items():
            metric = Metric(name, family.documentation, family.type)
            for (sample_name, labels), value in sums[name].items():
                metric.add_sample(sample_name, dict(labels), value)
            yield metric
