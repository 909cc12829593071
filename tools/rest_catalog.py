"""Iceberg's own REST catalog server for tests: `python -m tools.rest_catalog`.

Iceberg publishes the server that its clients are tested against, without what it stands on. That
comes from Maven Central too, pinned, and from PySpark, which has Hadoop, Jackson and Avro.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.environment import read_machine
from lakehouse_core.runtime.artifacts import SQLITE_JDBC, Artifact, ensure
from lakehouse_core.runtime.ivy import Coordinates
from lakehouse_core.runtime.report import SilentReporter
from lakehouse_core.runtime.spark import spark_home

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.report import Reporter

MAIN_CLASS = "org.apache.iceberg.rest.RESTCatalogServer"

# group:name:version[:classifier] → bytes and sha256. Iceberg 1.12 has not published its server.
_JARS = {
    "org.apache.iceberg:iceberg-open-api:1.11.0:test-fixtures": (
        14_277,
        "b0aa8636d88c24976d552ac9b3075a1315dc1ccd4fa6ed95b365901842664316",
    ),
    "org.apache.iceberg:iceberg-core:1.11.0:tests": (
        1_804_337,
        "4284719a5f0eb7db01e9f784a0ed4ca8bacf7d6f9951924143afc083428d8be3",
    ),
    "org.apache.iceberg:iceberg-core:1.11.0": (
        2_575_099,
        "53b9eb7a8c34fb9958ea7d9a4d19ba5bc96f592d0f05e8625b0778c70b1f0090",
    ),
    "org.apache.iceberg:iceberg-api:1.11.0": (
        705_698,
        "f00675a12ceb6d833bb9c22024823a3e7afdedf7abcefe34719f45b0d211995a",
    ),
    "org.apache.iceberg:iceberg-common:1.11.0": (
        31_895,
        "b2835d00db7c92bdfa728123ad7cdcb488e2f2805c1c51fb9ae94e8bd203bd7d",
    ),
    "org.apache.iceberg:iceberg-bundled-guava:1.11.0": (
        1_785_615,
        "396d48d93ef5735f2ddef0cf9b3d6968ebd67b64b5cfe753d41c429d3f46a2a1",
    ),
    "org.eclipse.jetty:jetty-server:12.1.8": (
        702_759,
        "71b8862a72305aebb65909b8b9f3c9a0c790ef3245c6056e56b48117aec238fe",
    ),
    "org.eclipse.jetty:jetty-util:12.1.8": (
        726_622,
        "00432715f20c3ddc8d4fe3b01974253a7772f1830f7712da71af30348b01c822",
    ),
    "org.eclipse.jetty:jetty-io:12.1.8": (
        382_929,
        "c45a68ceed3526f5ca0974768caa61f6683c3d5591a819fbcf3c0480a64ab245",
    ),
    "org.eclipse.jetty:jetty-http:12.1.8": (
        477_500,
        "32c351984fd74e7db9b3120f7aa43c034a9d7fe290386747ff318f4c4221d94b",
    ),
    "org.eclipse.jetty:jetty-session:12.1.8": (
        118_040,
        "ebe84dd41942d7adda5f7d1304095d274e7915999451d848e887cbd409f947ea",
    ),
    "org.eclipse.jetty:jetty-security:12.1.8": (
        163_439,
        "44add9ee95b955d96979cc74e32ec751ea807ebc0f5139eb13adcfc23712c58f",
    ),
    "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.8": (
        449_150,
        "c6251faae241b2b6879ce8fb9177366ca4793ff9356f60793b8d10a1f1fef404",
    ),
    "org.eclipse.jetty.compression:jetty-compression-server:12.1.8": (
        27_099,
        "fab794df5609bbe97e7ff04d8d5ff3446048dc7af7ca64ce52bbe19d31c420a5",
    ),
    "org.eclipse.jetty.compression:jetty-compression-common:12.1.8": (
        12_599,
        "46f12d348115f310130c7df6e736017c6e7dc032f19b96a0dc2658f56ec43bf1",
    ),
    "org.eclipse.jetty.compression:jetty-compression-gzip:12.1.8": (
        20_379,
        "482455c2e4b243913354dfd52cf2a68becfb9a7479c1deb385019f97925f0ae0",
    ),
    "jakarta.servlet:jakarta.servlet-api:6.0.0": (
        347_613,
        "c034eb1afb158987dbb53a5fea0cadf611c8dae8daadd59c44d9d5ab70129cef",
    ),
    "com.github.ben-manes.caffeine:caffeine:2.9.3": (
        912_143,
        "1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b",
    ),
    "org.apache.httpcomponents.core5:httpcore5:5.4.2": (
        954_859,
        "7c34a25506e7207b6748cef9e91163ed03081bee805cef930d82e1d8761d62f1",
    ),
    "org.apache.httpcomponents.client5:httpclient5:5.6.1": (
        1_054_142,
        "1e3d8444c3c27772e4b9d42a790f06b3345a8ece4fd16d00981f2f2460e1e772",
    ),
}
_OF_SPARK = (
    "hadoop-client-*.jar",
    "jackson-annotations-*.jar",
    "jackson-core-2*.jar",
    "jackson-databind-*.jar",
    "avro-1*.jar",
    "slf4j-api-*.jar",
    "commons-logging-*.jar",
    "RoaringBitmap-*.jar",
    "aircompressor-*.jar",
)


def ensure_server(machine: Machine, reporter: Reporter) -> tuple[Path, ...]:
    """Have the server in the cache; returns its class path.

    Raises:
        DownloadError: something could not be downloaded.
        ChecksumError: a download is not what was pinned.
        NotInstalledError: there is no Java to download with, or no PySpark.
    """
    pinned = [_artifact(name, *facts) for name, facts in _JARS.items()]
    jars = ensure(machine, (*pinned, SQLITE_JDBC), reporter)
    spark = spark_home() / "jars"
    return (*jars, *(jar for pattern in _OF_SPARK for jar in sorted(spark.glob(pattern))))


def _artifact(name: str, size_bytes: int, sha256: str) -> Artifact:
    group, module, version, *kind = name.split(":")
    coordinates = Coordinates(group, module, version, "jar", kind[0] if kind else None)
    return Artifact(coordinates, size_bytes, sha256)


if __name__ == "__main__":
    for path in ensure_server(read_machine(), SilentReporter()):
        print(path)
