"""A trained model in a file: plain arrays and one JSON header, nothing that can run.

save(path, trained); trained = load(path)
"""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from lakehouse_core.domain.errors import ModelUnreadableError
from lakehouse_core.routing.features import FeatureSpace
from lakehouse_core.routing.predict_forest import Forest, Ridge
from lakehouse_core.routing.predict_policy import Rule
from lakehouse_core.routing.predict_training import VERSION, Learned, Model, Trained

if TYPE_CHECKING:
    from pathlib import Path

_HEADER = "header"


def save(path: Path, trained: Trained) -> None:
    """Write a model beside its place and move it there: nobody ever sees half of one."""
    learned = trained.learned
    arrays: dict[str, Any] = {}
    header = {
        "engines": trained.engines,
        "words": trained.space.words,
        "version": learned.version,
        "digest": learned.digest,
        "default": learned.default,
        "order": learned.order,
        "scatter": learned.scatter.tolist(),
        "mean": learned.model.mean.tolist(),
        "ridge": _taken_apart("ridge", learned.model.ridge, arrays),
        "forest": _taken_apart("forest", learned.model.forest, arrays),
        "known": _taken_apart("known", learned.known, arrays),
        "unseen": _taken_apart("unseen", learned.unseen, arrays),
    }
    arrays[_HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    with aside.open("wb") as sink:
        np.savez_compressed(sink, allow_pickle=False, **arrays)
        sink.flush()
        os.fsync(sink.fileno())
    aside.replace(path)


def load(path: Path) -> Trained:
    """Read a model.

    Raises:
        ModelUnreadableError: it is missing, broken, or of another version; train it again.
    """
    try:
        with path.open("rb") as source, np.load(source, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        header = json.loads(arrays[_HEADER].tobytes())
        if header["version"] != VERSION:
            reason = f"it is of version {header['version']}, this is {VERSION}"
            raise ModelUnreadableError(f"The routing model {path} cannot be used: {reason}")
        return _put_together(header, arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ModelUnreadableError(
            f"The routing model {path} cannot be read ({type(error).__name__}: {error}): "
            "delete it, the learn job trains another"
        ) from error


def _put_together(header: dict[str, Any], arrays: dict[str, Any]) -> Trained:
    engines = tuple(header["engines"])
    model = Model(
        int(header["default"]),
        len(engines),
        np.array(header["mean"]),
        _made(Ridge, header["ridge"], arrays, "ridge"),
        _made(Forest, header["forest"], arrays, "forest"),
    )
    learned = Learned(
        int(header["version"]),
        str(header["digest"]),
        int(header["default"]),
        tuple(header["order"]),
        model,
        _made(Rule, header["known"], arrays, "known"),
        _made(Rule, header["unseen"], arrays, "unseen"),
        np.array(header["scatter"]),
    )
    return Trained(engines, FeatureSpace(tuple(header["words"])), learned)


def _taken_apart(prefix: str, record: Any, arrays: dict[str, Any]) -> dict[str, Any] | None:
    """Arrays under names of their own, the rest for the header."""
    if record is None:
        return None
    plain: dict[str, Any] = {}
    for one in dataclasses.fields(record):
        value = getattr(record, one.name)
        if isinstance(value, np.ndarray):
            arrays[f"{prefix}.{one.name}"] = value
        else:
            plain[one.name] = value
    return plain


def _made(kind: Any, plain: dict[str, Any] | None, arrays: dict[str, Any], prefix: str) -> Any:
    if plain is None:
        return None
    names = [one.name for one in dataclasses.fields(kind)]
    found = {name: arrays[f"{prefix}.{name}"] for name in names if f"{prefix}.{name}" in arrays}
    return kind(**plain, **found)
