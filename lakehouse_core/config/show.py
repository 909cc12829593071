"""The configuration as people look at it: every value with its origin, secrets masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from lakehouse_core.config.problems import MASK, dotted, looks_secret
from lakehouse_core.config.secrets import mask
from lakehouse_core.config.walk import leaves, value_at

if TYPE_CHECKING:
    from lakehouse_core.config.loader import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One line of `lakehelm config show`; the value of a secret is its reference."""

    key: str
    value: object
    origin: str
    is_secret: bool


def settings(loaded: Loaded) -> list[Setting]:
    """Every value of a loaded configuration with its origin, secrets masked."""
    written = loaded.config.model_dump(mode="json")  # durations and sizes as people write them
    result = []
    for path, value in leaves(loaded.config):
        key = dotted(path)
        is_secret = isinstance(value, SecretStr) or looks_secret(str(path[-1]))
        shown = value_at(path, written)
        if isinstance(value, SecretStr):
            shown = mask(value.get_secret_value())
        elif is_secret and value:
            shown = MASK
        origin = str(loaded.origins[key])
        result.append(Setting(key=key, value=shown, origin=origin, is_secret=is_secret))
    return result
