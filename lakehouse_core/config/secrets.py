"""Secrets are references; this is the only place that turns one into its value."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.config.problems import MASK
from lakehouse_core.config.types import REFERENCE_HELP
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr


def resolve_secret(ref: SecretStr, environ: Mapping[str, str] = os.environ) -> str:
    """The value behind `env:NAME` or `file:PATH`.

    Raises:
        ConfigError: it is not a reference, or nothing is there; the message names the reference,
            never a value.
    """
    text = ref.get_secret_value()
    scheme, _, target = text.partition(":")
    if scheme == "env" and target:
        value = environ.get(target)
        if not value:
            raise ConfigError(f"secret {text}: environment variable {target} is not set or empty")
        return value
    if scheme == "file" and target:
        return _read(text, Path(target))
    raise ConfigError(f"secret {mask(text)}: {REFERENCE_HELP}")


def mask(text: str) -> str:
    """A secret as it may be shown: a reference stays readable, a value does not."""
    return text if text.startswith(("env:", "file:")) else MASK


def _read(ref: str, path: Path) -> str:
    try:
        value = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError as error:
        raise ConfigError(
            f"secret {ref}: no such file; create it (mode 0600), or let `lakehelm up` do so"
        ) from error
    except (OSError, ValueError) as error:
        # A decoding error quotes the bytes it met: the cause is named by its type only.
        raise ConfigError(
            f"secret {ref}: the file cannot be read ({type(error).__name__})"
        ) from None
    if not value:
        raise ConfigError(f"secret {ref}: the file is empty; write the secret into it")
    return value
