"""Secrets: references in, values out, and never a value in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from lakehouse_core.config.secrets import mask, resolve_secret
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_environment_reference_gives_the_variables_value() -> None:
    assert resolve_secret(SecretStr("env:TOKEN"), {"TOKEN": "s3cret"}) == "s3cret"


def test_file_reference_gives_the_text_without_the_trailing_newline(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    assert resolve_secret(SecretStr(f"file:{tmp_path}/token")) == "s3cret"


def test_a_value_where_a_reference_belongs_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError, match="env:NAME") as caught:
        resolve_secret(SecretStr("s3cret"))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("environ", [{}, {"TOKEN": ""}])
def test_unset_or_empty_variable_is_told(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="environment variable TOKEN is not set or empty"):
        resolve_secret(SecretStr("env:TOKEN"), environ)


def test_missing_file_is_told_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no such file; create it \(mode 0600\)"):
        resolve_secret(SecretStr(f"file:{tmp_path}/nope"))


def test_empty_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ConfigError, match="the file is empty"):
        resolve_secret(SecretStr(f"file:{tmp_path}/token"))


def test_unreadable_file_is_told_without_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"s3cret\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        resolve_secret(SecretStr(f"file:{tmp_path}/token"))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_mask_keeps_references_and_hides_values() -> None:
    assert mask("env:TOKEN") == "env:TOKEN"
    assert "s3cret" not in mask("s3cret")
