"""Field types of the configuration that are stricter than pydantic's own.

YAML 1.1 reads `yes` as true and pydantic reads true as 1, so that `port: yes` would mean port 1; an
empty path would mean the home folder itself. Both are refused here, once, for every section.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    WithJsonSchema,
)

REFERENCE_SCHEMES = ("env:", "file:")
REFERENCE_HELP = (
    "a secret is given as a reference, never as a value: env:NAME reads an environment variable, "
    "file:PATH reads a file (relative to home)"
)


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("expected a number, not true or false")  # noqa: TRY004 pydantic wants ValueError
    return value


def _usable_path(value: object) -> object:
    text = str(value) if isinstance(value, str | Path) else None
    if text is not None and (not text.strip() or "\0" in text):
        raise ValueError("expected a path, not an empty text")
    return value


def _reference(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    scheme = next((s for s in REFERENCE_SCHEMES if text.startswith(s)), None)
    if scheme is None or not text[len(scheme) :].strip() or "\0" in text:
        raise ValueError(REFERENCE_HELP)
    return value


def _setting_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return value


Int = Annotated[int, BeforeValidator(_refuse_bool)]
Float = Annotated[float, BeforeValidator(_refuse_bool), Field(allow_inf_nan=False)]
Count = Annotated[int, BeforeValidator(_refuse_bool), Field(ge=1)]
Port = Annotated[int, BeforeValidator(_refuse_bool), Field(ge=1, le=65_535)]
# Written as text, money has the digits that were written; a float has not.
Price = Annotated[
    Decimal, BeforeValidator(_refuse_bool), Field(ge=0, max_digits=18, decimal_places=9)
]
# Of a day in UTC, e.g. 22:00-04:00.
Hours = Annotated[
    str,
    StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$"),
]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
# Names end up in file names, metric labels, SQL and override variables: one spelling fits all.
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*([_-][a-z0-9]+)*$")]
FilePath = Annotated[Path, BeforeValidator(_usable_path)]
SecretRef = Annotated[SecretStr, AfterValidator(_reference)]
# A setting handed on to an engine as text; YAML's true is the engine's "true".
SettingText = Annotated[
    str,
    BeforeValidator(_setting_text),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
