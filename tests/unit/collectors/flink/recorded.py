"""Payloads of a real JobManager (Flink 2.1.3): a job while it ran, and how three jobs ended."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from collectors.flink.mapping import JobPayloads

FOLDER = Path(__file__).parents[3] / "integration" / "fixtures" / "flink"
_JOBS = json.loads((FOLDER / "jobs.json").read_text())


def payloads(name: str) -> dict[str, Any]:
    """What Flink told about a job; the caller may change it."""
    return dict(copy.deepcopy(_JOBS[name]))


def job(name: str) -> JobPayloads:
    """The same, as the mapping takes it."""
    return JobPayloads(**payloads(name))
