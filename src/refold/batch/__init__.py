"""Replays many transcripts on processes or a cluster into Parquet files, and goes on where a run was ended."""

from refold.batch._run import BatchProgress, run_batch
from refold.batch._settings import BatchSettings
from refold.batch._shard import replay_files

__all__ = ["BatchProgress", "BatchSettings", "replay_files", "run_batch"]
