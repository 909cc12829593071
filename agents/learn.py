"""The learn agent: train a model for each objective of routing, try it, keep it when it is better.

The gateway takes up what is kept within a minute, and lets go of what is taken away; then the
profiles alone decide.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from agents.runs import Result
from lakehouse_core.routing import predict_file
from lakehouse_core.routing.learned import OBJECTIVES, REMEMBERED_DAYS, model_path, valuations_of
from lakehouse_core.routing.profiles_history import past_runs
from lakehouse_core.routing.proof import prove
from lakehouse_core.sql.inspector import Inspector

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse_core.config.models import Config
    from lakehouse_core.domain.clock import Clock
    from lakehouse_core.routing.proof import Proof
    from lakehouse_core.store.port import TelemetryStore

_log = structlog.get_logger(__name__)
MOST_RUNS = 20_000
RUNS_EACH = 16  # of a template on an engine: more of the same teaches little
KEPT_VERSIONS = 5


def run_once(store: TelemetryStore, config: Config, clock: Clock) -> Result:
    """Train on the history; `rows` are models that were changed."""
    since = clock() - timedelta(days=REMEMBERED_DAYS)
    past = past_runs(store, since, runs=RUNS_EACH)[-MOST_RUNS:]
    usable = {name for name, engine in config.engines.items() if engine.enabled}
    past = [one for one in past if one.run.engine_id in usable]
    inspector = Inspector()
    changed = 0
    for objective, value_of in valuations_of(config).items():
        if objective in OBJECTIVES:
            proof = prove(past, value_of, inspector)
            changed += _keep(model_path(config, objective), objective, proof)
    return Result(rows=changed)


def _keep(path: Path, objective: str, proof: Proof | None) -> bool:
    """Put a model in its place, or take one away that is not proven; whether something changed."""
    if proof is None or not proof.is_worth_using:
        is_there = path.exists()
        path.unlink(missing_ok=True)
        if proof is not None:
            _log.info("routing model discarded", objective=objective, **_figures(proof))
        return is_there
    versioned = path.with_name(f"{path.stem}-{proof.name}.npz")
    if versioned.exists() and path.exists():
        return False  # nothing new was learnt
    predict_file.save(versioned, proof.trained)
    predict_file.save(path, proof.trained)
    _log.info("routing model kept", objective=objective, **_figures(proof))
    versions = sorted(path.parent.glob(f"{path.stem}-v*.npz"), key=lambda one: one.stat().st_mtime)
    for old in versions[:-KEPT_VERSIONS]:
        old.unlink(missing_ok=True)
    return True


def _figures(proof: Proof) -> dict[str, object]:
    ratio = proof.ours / proof.default if proof.default else 1.0
    return {"model": proof.name, "of_default": round(ratio, 4), "tried": proof.tried}
