"""Making paths absolute: `home` from the folder of the file, everything else from `home`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, SecretStr

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config

_FILE = "file:"
M = TypeVar("M", bound=BaseModel)


def with_absolute_paths(config: Config, file: Path) -> Config:
    """A copy of the configuration in which every path, also in `file:` secrets, is absolute."""
    home = _absolute(config.home, file.absolute().parent)
    return _copy(config.model_copy(update={"home": home}), home)


def _copy(section: M, home: Path) -> M:
    changes = {}
    for name in type(section).model_fields:
        before = getattr(section, name)
        after = _resolved(before, home)
        if after is not before:
            changes[name] = after
    return section.model_copy(update=changes) if changes else section


def _resolved(value: Any, home: Path) -> Any:
    if isinstance(value, BaseModel):
        return _copy(value, home)
    if isinstance(value, dict):
        return {key: _resolved(item, home) for key, item in value.items()}
    if isinstance(value, tuple):
        items = tuple(_resolved(item, home) for item in value)
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(value, Path):
        return _absolute(value, home)
    if isinstance(value, SecretStr) and value.get_secret_value().startswith(_FILE):
        path = Path(value.get_secret_value().removeprefix(_FILE))
        return SecretStr(f"{_FILE}{_absolute(path, home)}")
    return value


def _absolute(path: Path, base: Path) -> Path:
    with contextlib.suppress(RuntimeError):  # no such user: the ~ is part of a name
        path = path.expanduser()
    return Path(os.path.normpath(base / path))
