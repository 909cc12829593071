"""A plain Spark application, as people submit them: some SQL, some DataFrames, one failure."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def main(namespace: str) -> None:
    spark = SparkSession.builder.appName("nightly load").getOrCreate()
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
    spark.sql(f"CREATE TABLE lake.{namespace}.t (id BIGINT, v STRING)")
    rows = spark.range(1_000).select("id", f.col("id").cast("string").alias("v"))
    rows.writeTo(f"lake.{namespace}.t").append()
    table = spark.table(f"lake.{namespace}.t")
    table.where("id > 10").groupBy(f.col("id") % 7).count().collect()
    spark.sql(f"SELECT max(v) FROM lake.{namespace}.t").collect()  # noqa: S608 a name of ours
    try:
        table.select(f.raise_error(f.lit("no luck"))).collect()
    except Exception as error:  # noqa: BLE001 it is meant to fail
        print(type(error).__name__)  # noqa: T201 what the log of the test shows
    spark.sparkContext.parallelize(range(10), 2).count()  # a job without an execution
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
