"""Many transcripts on Ray: `python batch_on_ray.py FOLDER OUT`; needs `pip install 'refold[batch]' 'ray[data]'`."""

import sys
from pathlib import Path

import ray

from refold.batch import BatchSettings, replay_files

SETTINGS = BatchSettings(policies=("refold",), window=200_000, judge=False)
folder, out = sys.argv[1:]
paths = [{"path": str(path)} for path in sorted(Path(folder).absolute().rglob("*.json*"))]
rows = ray.data.from_items(paths).map_batches(
    lambda batch: replay_files(batch["path"].to_pylist(), SETTINGS), batch_size=100, batch_format="pyarrow"
)
rows.write_parquet(out)
