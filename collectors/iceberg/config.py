"""What the Iceberg source needs to know, from the configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from lakehouse_core.health import thresholds_for

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import Config, HealthConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSettings:
    """How tables are read.

    Attributes:
        cache: folder for what was learned from manifests; may be deleted at any time.
        health: says which files of which table are small.
        verify_every: how often the metadata files of a table that did not change are looked at.
        batch_tables: how many changed tables go into one batch.
        overlap: commits this much older than the newest known one are sent again: clocks of
            writers differ.
    """

    cache: Path
    health: HealthConfig
    verify_every: timedelta = timedelta(minutes=1)
    batch_tables: int = 100
    overlap: timedelta = timedelta(minutes=10)

    def small_file_bytes(self, table_id: str) -> int:
        """Below which size a file of the table is small."""
        return thresholds_for(self.health, table_id).small_file_bytes

    def fingerprint(self) -> str:
        """Changes when what counts as small does: all tables are then measured again."""
        tables = {
            pattern: limits.small_file_bytes
            for pattern, limits in self.health.tables.items()
            if "small_file_bytes" in limits.model_fields_set
        }
        return json.dumps([self.health.defaults.small_file_bytes, tables])


def iceberg_settings(config: Config) -> IcebergSettings:
    """The settings for a configuration."""
    return IcebergSettings(cache=config.home / "cache" / "iceberg", health=config.health)
