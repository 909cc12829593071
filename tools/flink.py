"""A Flink distribution for tests, in the cache that all downloads share: `python -m tools.flink`.

Maven Central has Flink's modules, but not the shaded jars that a cluster runs on; the package
apache-flink-libraries has these. Of it only the jars are taken: no Python environment is needed,
and none of PyFlink's dependencies. What is not Flink's own comes from Maven Central, pinned.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.config.environment import read_machine
from lakehouse_core.runtime.artifacts import SQLITE_JDBC, Artifact, cache_lock, ensure
from lakehouse_core.runtime.ivy import Coordinates, DownloadError
from lakehouse_core.runtime.report import SilentReporter

if TYPE_CHECKING:
    from lakehouse_core.config.environment import Machine
    from lakehouse_core.runtime.report import Reporter

VERSION = "2.1.3"
REQUIREMENTS = Path(__file__).with_name("flink-requirements.txt")
DOWNLOAD_SECONDS = 900

SQL_GATEWAY = Artifact(
    Coordinates("org.apache.flink", "flink-sql-gateway", VERSION, "jar"),
    1_044_631,
    "ac677252fe6fe9dd32cc14c4aea16a2e36a8306469d61fcfdb57f45610bbb215",
)
# Iceberg 1.12 has not published its runtime for Flink 2.1.
ICEBERG_FLINK = Artifact(
    Coordinates("org.apache.iceberg", "iceberg-flink-runtime-2.1", "1.11.0", "jar"),
    39_122_167,
    "39e658d876f253815b4b17c6676bebf6a24d517afe93a21298106d1d7fa97331",
)
HADOOP = (
    Artifact(
        Coordinates("org.apache.hadoop", "hadoop-client-api", "3.4.1", "jar"),
        19_631_854,
        "a964d4daa054c9615bbafb4553efbb140fa7fb9ac6f358a24393f183a5703438",
    ),
    Artifact(
        Coordinates("org.apache.hadoop", "hadoop-client-runtime", "3.4.1", "jar"),
        30_413_579,
        "f6a800a159f918670db533606d33560d6c13b7e13f14eda493280ae33b9eeb2f",
    ),
    Artifact(
        Coordinates("commons-logging", "commons-logging", "1.3.4", "jar"),
        73_721,
        "bc2dfe32f1ef06509e6a065144c1adf7b420eabf11a87f30bd127f8faa332016",
    ),
)


@dataclass(frozen=True, slots=True)
class Flink:
    """Class paths of a cluster with Iceberg, and of the SQL client on top of it."""

    cluster: tuple[Path, ...]
    sql_client: tuple[Path, ...]


def ensure_flink(machine: Machine, reporter: Reporter) -> Flink:
    """Have Flink and what it needs for Iceberg on a SQLite catalog in the cache.

    Raises:
        DownloadError: something could not be downloaded.
        ChecksumError: a download is not what was pinned.
        NotInstalledError: there is no Java to download with.
    """
    jars = ensure(machine, (SQLITE_JDBC, ICEBERG_FLINK, *HADOOP, SQL_GATEWAY), reporter)
    home = machine.cache / f"flink-{VERSION}"
    if not home.is_dir():
        with cache_lock(machine.cache, reporter):
            if not home.is_dir():
                reporter.say(f"Downloading Flink {VERSION} (310 MB)")
                _unpack(home)
    gateway = jars[-1]
    return Flink(
        cluster=(*sorted((home / "lib").glob("*.jar")), *jars[:-1]),
        sql_client=(*sorted((home / "opt").glob("*.jar")), gateway),
    )


def _unpack(home: Path) -> None:
    """Fetch the package, checked against its pinned hash, and take its jars."""
    with tempfile.TemporaryDirectory(prefix=".fetch-flink-", dir=home.parent) as work:
        folder = Path(work)
        command = (
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes",
            "--requirement", str(REQUIREMENTS), "--dest", work,
        )  # fmt: skip
        try:
            subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = (error.stderr or "").strip() if isinstance(error.stderr, str) else ""
            raise DownloadError(
                f"Flink {VERSION} could not be downloaded ({said[-500:] or error})"
            ) from error
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            for member in tar:
                _, _, name = member.name.partition("/deps/")
                if member.isfile() and name.endswith(".jar") and name.startswith(("lib/", "opt/")):
                    target = folder / "flink" / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    source = tar.extractfile(member)
                    assert source is not None  # noqa: S101 it is a file
                    with source, target.open("wb") as sink:
                        shutil.copyfileobj(source, sink)
        (folder / "flink").rename(home)


def main() -> int:
    """Fill the cache, so that the tests need not."""
    flink = ensure_flink(read_machine(), SilentReporter())
    print(f"{len(flink.cluster) + len(flink.sql_client)} jars of Flink {VERSION} are there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
