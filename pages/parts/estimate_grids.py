"""The table of estimates beside what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.views.formatting import size
from pages.parts.cells import counted, number, percent, show

if TYPE_CHECKING:
    from lakehouse_core.views.estimates import ScanEstimates

HOW_ESTIMATED = """
Before a read runs, the gateway tells from the bounds of the tables' files which of them it needs.
Here that is held against what the engine says it read.

- **Read of estimated**: bytes read by bytes estimated; the median, and the range that nine of ten
  reads are in. Far below 100 % is usual: whole files are estimated, and engines read only the
  columns they need of them.
- **Told too low**: reads that read more than was estimated and 16 KiB per file, for footers that
  are read before the columns. Every file that may hold a row is counted, so that should be nothing.
- **Not estimated**: a table that the gateway does not hold in memory, or a text it does not
  understand. **Not compared**: the engine did not say what it read.

`lakehelm route estimates --json` has the same numbers.
"""


def estimate_grid(found: ScanEstimates) -> None:
    """One row per engine."""
    rows = [
        {
            "engine": one.engine_id,
            "reads": one.reads,
            "without": one.reads - one.estimated,
            "compared": one.compared,
            "estimated": size(one.estimated_bytes) if one.compared else None,
            "read": size(one.read_bytes) if one.compared else None,
            "p50": percent(one.p50_ratio),
            "p05": percent(one.p05_ratio),
            "p95": percent(one.p95_ratio),
            "too_low": one.too_low if one.compared else None,
        }
        for one in found.engines
    ]
    show(
        rows,
        {
            "engine": "Engine",
            "reads": counted("Reads"),
            "without": counted("Not estimated"),
            "compared": counted("Compared"),
            "estimated": "Estimated",
            "read": "Read",
            "p50": number("Read of estimated, p50", "%.1f %%"),
            "p05": number("p5", "%.1f %%"),
            "p95": number("p95", "%.1f %%"),
            "too_low": counted("Told too low"),
        },
    )
