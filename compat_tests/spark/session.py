"""A Spark session on this machine with the Kafka source and sink, from PySpark and the jars that Maven brings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests import needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make(warehouse: Path) -> SparkSession:
    import pyspark
    from pyspark.sql import SparkSession

    jars = needs.jars("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("pykafkad compat tests")
        .config("spark.jars", ",".join(str(jar) for jar in sorted(jars.glob("*.jar"))))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
