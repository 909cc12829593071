"""What must be true before anything is started, and what is left out otherwise."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import ConfigError, LakehouseError, NotInstalledError, Terminal
from lakehouse_core.runtime.artifacts import SPARK_JARS, TRINO_SERVER, is_cached
from lakehouse_core.runtime.java import find_javas, java_for_spark, java_for_trino
from lakehouse_core.runtime.spark import spark_engine
from lakehouse_core.runtime.trino import server_dir, trino_engine

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from lakehouse_core.config.environment import Machine
    from lakehouse_core.config.models import Config
    from lakehouse_core.runtime.java import Java

HOME_MIN_BYTES = 1 * 2**30
UNPACKED_TRINO_BYTES = 550_000_000


class DiskSpaceError(Terminal, LakehouseError):
    """Raised when a disk has too little room to start; nothing has been written yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which engines take part, with their Java, and why others do not."""

    spark_java: Java | None
    trino_java: Java | None
    skipped: dict[str, str]  # engine id -> why, in the user's words


def select_engines(config: Config, machine: Machine, without: Collection[str]) -> Selection:
    """Decide who takes part; an engine without its Java is left out, and it is said why.

    Raises:
        ConfigError: `without` names an engine that is not configured.
    """
    unknown = sorted(set(without) - set(config.engines))
    if unknown:
        raise ConfigError(
            f"--without {unknown[0]}: no such engine; configured are {', '.join(config.engines)}"
        )
    skipped = dict.fromkeys(without, "left out by --without")
    javas = find_javas(machine)
    spark, trino = spark_engine(config), trino_engine(config)
    spark_java = trino_java = None
    if spark is not None and spark[1].managed and spark[0] not in skipped:
        try:
            spark_java = java_for_spark(javas)
        except NotInstalledError as error:
            skipped[spark[0]] = str(error)
    if trino is not None and trino[1].managed and trino[0] not in skipped:
        try:
            trino_java = java_for_trino(javas)
        except NotInstalledError as error:
            skipped[trino[0]] = str(error)
    return Selection(spark_java=spark_java, trino_java=trino_java, skipped=skipped)


def needed_bytes(machine: Machine, *, with_trino: bool) -> int:
    """How much the cache will still grow."""
    artifacts = list(SPARK_JARS)
    unpacked = 0
    if with_trino and not server_dir(machine).is_dir():
        artifacts.append(TRINO_SERVER)
        unpacked = UNPACKED_TRINO_BYTES
    # Twice: a download is kept apart until its checksum is known.
    missing = sum(2 * a.size_bytes for a in artifacts if not is_cached(machine, a))
    return missing + unpacked


def require_disk(home: Path, machine: Machine, *, with_trino: bool) -> None:
    """Refuse to start when the home or the cache has too little room.

    Raises:
        DiskSpaceError: names the folder, what is there and what is needed.
    """
    for folder, least in (
        (home, HOME_MIN_BYTES),
        (machine.cache, needed_bytes(machine, with_trino=with_trino)),
    ):
        free = free_bytes(folder)
        if free < least:
            raise DiskSpaceError(
                f"{folder} has {free / 2**20:.0f} MiB free, {least / 2**20:.0f} MiB are needed. "
                "Make room, or set LAKEHELM_HOME (data) or LAKEHELM_CACHE (downloads) to a folder "
                "on another disk."
            )


def free_bytes(folder: Path) -> int:
    """Free space where the folder is, or will be."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
