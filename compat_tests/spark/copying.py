"""A Spark program that copies a topic into JSON files, until it is killed or has written COUNT rows:

python -m compat_tests.spark.copying BOOTSTRAP TOPIC DIRECTORY COUNT
"""

from __future__ import annotations

import sys
from pathlib import Path

from compat_tests.spark import session
from compat_tests.spark.kit import stream

SOME = 1_500  # rows of a batch, at the most


def main(bootstrap: str, topic: str, directory: str, count: str) -> None:
    home = Path(directory)
    spark = session.make(home / "warehouse")
    query = (
        stream(spark, bootstrap, topic, maxOffsetsPerTrigger=str(SOME))
        .selectExpr("cast(value as string) as value", "partition", "offset")
        .writeStream.format("json")
        .option("path", str(home / "rows"))
        .option("checkpointLocation", str(home / "checkpoint"))
        .start()
    )
    written = spark.read.schema("value string, partition int, offset long").format("json")
    while query.isActive:
        query.processAllAvailable()
        if written.load(str(home / "rows")).count() >= int(count):
            query.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
