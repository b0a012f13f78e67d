"""Many transcripts on Spark: `spark-submit batch_on_spark.py FOLDER OUT`; needs `refold[batch]` on each worker."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from refold.batch import BatchSettings, replay_files

SETTINGS = BatchSettings(policies=("refold",), window=200_000, judge=False)
folder, out = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
paths = [(str(path),) for path in sorted(Path(folder).absolute().rglob("*.json*"))]
tasks = spark.createDataFrame(paths, "path string").repartition(max(len(paths) // 100, 1))
schema = from_arrow_schema(replay_files([], SETTINGS).schema)
rows = tasks.mapInArrow(
    lambda batches: (
        part for batch in batches for part in replay_files(batch["path"].to_pylist(), SETTINGS).to_batches()
    ),
    schema,
)
rows.write.parquet(out)
