"""Configuration of the layout advisor."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from lakehouse_core.config.section import Section
from lakehouse_core.config.types import Count, Float
from lakehouse_core.config.units import ByteSize, Interval


class LayoutConfig(Section):
    """When tables are looked at for a better order of their rows, and what is worth a rewrite.

    Attributes:
        every: how often the tables that are read most are looked at.
        tables_per_run: how many of them, the costliest that were not looked at for longest.
        sample_rows: rows of a sample.
        sample_bytes: data files that may be read for a sample.
        least_file_bytes: no smaller files are advised.
        margin: the share of what reading costs that a layout must save.
        min_runs: with fewer runs in the evidence window nothing is advised.
        payback: a rewrite must pay within this time.
        timeout: of the job that takes the sample.
    """

    enabled: bool = True
    every: Interval = timedelta(hours=6)
    tables_per_run: Count = 5
    sample_rows: Count = 250_000
    sample_bytes: ByteSize = 4 * 2**30
    least_file_bytes: ByteSize = 32 * 2**20
    margin: Annotated[Float, Field(ge=0, le=1)] = 0.20
    min_runs: Count = 20
    payback: Interval = timedelta(days=30)
    timeout: Interval = timedelta(minutes=30)
