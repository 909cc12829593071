"""What the DuckDB source needs to know, from the engine's and the collector's sections."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.domain.query import EngineId

if TYPE_CHECKING:
    from lakehouse_core.config.models import CollectConfig, DuckDBEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSettings:
    """Where the journal is, and how it is read.

    Attributes:
        overlap: how long an unfinished last line is waited for.
        batch_bytes: how much of a file goes into one batch.
    """

    engine_id: EngineId
    folder: Path
    catalog: str | None = None
    overlap: timedelta = timedelta(minutes=5)
    batch_bytes: int = 4 * 2**20


def journal_settings(
    engine_id: str, engine: DuckDBEngine, collect: CollectConfig
) -> JournalSettings:
    """The settings of a configured engine."""
    return JournalSettings(
        engine_id=EngineId(engine_id),
        folder=Path(engine.journal),
        catalog=engine.catalog,
        overlap=collect.overlap,
    )
