"""Event logs that have served: of applications that ended, read to their end, and old.

Spark's own cleaner is part of its history server, which a managed server does not have, and it
knows nothing of what we have read.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.spark.layout import list_apps
from collectors.spark.position import SparkPosition
from lakehouse_core.config.models import SparkEngine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from collectors.spark.layout import AppLog
    from lakehouse_core.config.models import Config


def engines_with_logs(config: Config) -> Iterator[tuple[str, SparkEngine]]:
    """The Spark servers whose logs are ours to remove: those we start and read the logs of."""
    for name, engine in config.engines.items():
        if isinstance(engine, SparkEngine) and engine.managed and engine.history_server is None:
            yield name, engine


def drop_read_logs(engine: SparkEngine, position: str | None, now: datetime) -> int:
    """Remove logs that were read to their end and not touched for `event_log_keep`.

    Args:
        engine: a server of `engines_with_logs`.
        position: the stored watermark of its source; None: nothing was read, nothing is removed.
        now: when.

    Returns:
        How many applications' logs are gone.

    Raises:
        SourceError: the position cannot be read.
        OSError: a log cannot be removed.
    """
    folder = Path(engine.event_log)
    if position is None or not folder.is_dir():
        return 0
    gone = list(_expired(list_apps(folder), SparkPosition.parse(position), now, engine))
    for app in gone:
        if app.path.is_dir():
            shutil.rmtree(app.path)
        else:
            app.path.unlink()
    return len(gone)


def _expired(
    apps: list[AppLog], position: SparkPosition, now: datetime, engine: SparkEngine
) -> Iterator[AppLog]:
    keep: timedelta = engine.event_log_keep
    for app in apps:
        known = position.apps.get(app.name)
        # Only what the position names: a log older than its horizon may never have been seen.
        is_read = known is not None and known.is_done and app.modified <= known.modified
        is_old = now.timestamp() - app.modified > keep.total_seconds()
        if is_read and is_old and not app.path.is_symlink():
            yield app
