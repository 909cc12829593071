"""Reading the models: which keys a place may hold, whether it is a secret, where an error belongs.

Pydantic's error locations name the chosen variant of a union (`engines.trino.trino.port`); people
know the key as `engines.trino.port`. The walk here follows data and annotations side by side.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr

from lakehouse_core.config.models import Config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse_core.config.problems import KeyPath


def annotation_at(path: KeyPath, data: Any) -> Any:
    """The type that belongs at a key path, given the data on the way; None when unknown there."""
    annotation: Any = Config
    for part in path:
        annotation = _child(annotation, part, data)
        data = _get(data, part)
        if annotation is None:
            return None
    return annotation


def known_keys(annotation: Any, data: Any) -> tuple[str, ...]:
    """The keys a section may hold; empty when any name goes or when it is not a section."""
    model = _model(annotation, data)
    return tuple(model.model_fields) if model else ()


def is_section(annotation: Any) -> bool:
    """Whether the type is a mapping of further keys."""
    return any(get_origin(v) is dict or _is_model(v) for v in _variants(annotation))


def is_secret(annotation: Any) -> bool:
    """Whether the type is a secret."""
    return any(v is SecretStr for v in _variants(annotation))


def key_path(location: Sequence[str | int], data: Any) -> KeyPath:
    """The key path of a pydantic error location: without the names of union variants."""
    annotation: Any = Config
    path: list[str | int] = []
    at_union = False
    for part in location:
        if part == "[key]":
            break
        if at_union and part == _get(data, "type"):
            at_union = False
            continue
        path.append(part)
        annotation = _child(annotation, part, data)
        data = _get(data, part)
        at_union = sum(_is_model(v) for v in _variants(annotation)) > 1
    return tuple(path)


def _variants(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _variants(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [v for part in get_args(annotation) for v in _variants(part)]
    return [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _model(annotation: Any, data: Any) -> type[BaseModel] | None:
    models: list[type[BaseModel]] = [v for v in _variants(annotation) if _is_model(v)]
    if len(models) < 2:
        return models[0] if models else None
    wanted = _get(data, "type")
    return next((m for m in models if wanted in get_args(m.model_fields["type"].annotation)), None)


def _child(annotation: Any, part: str | int, data: Any) -> Any:
    model = _model(annotation, data)
    if model is not None:
        known = model.model_fields.get(str(part))
        return known.annotation if known else None
    for variant in _variants(annotation):
        if get_origin(variant) in (dict, list):
            return get_args(variant)[-1]
        if get_origin(variant) is tuple:  # of one kind: tuple[X, ...]
            return get_args(variant)[0]
    return None


def _get(data: Any, part: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(part)
    if isinstance(data, list) and isinstance(part, int) and part < len(data):
        return data[part]
    return None
