"""A FOCUS file of a window, for a page to hand out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.finops import focus_columns
from lakehouse_core.finops.focus import FocusExport, export_focus
from lakehouse_core.views.groups import rules_of
from lakehouse_core.views.window import parse_window

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.finops.focus_columns import Version
    from lakehouse_core.store.port import TelemetryStore

VERSIONS: tuple[Version, ...] = focus_columns.VERSIONS
FORMATS = ("parquet", "csv")


def focus_file(
    store: TelemetryStore,
    config: Config,
    window: str,
    clock: Clock,
    *,
    version: Version,
    file_format: str,
) -> tuple[FocusExport, bytes]:
    """What was exported and checked, and the file itself."""
    span = parse_window(window, clock())
    with tempfile.TemporaryDirectory(prefix="lakehelm-focus-") as folder:
        path = Path(folder) / f"focus.{file_format}"
        found = export_focus(
            store, rules_of(config), config.finops.focus, span.start, span.end, path, version
        )
        return found, path.read_bytes()
