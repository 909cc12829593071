"""Whatever is in the file or the environment, the answer is a configuration or words."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lakehouse_core.config import load_config
from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.dates(),
    st.text(max_size=10),
    st.sampled_from(["${X}", "${X:-1}", "env:X", "file:x", "5m", "2GiB", "127.0.0.1", "trino"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any")


def paths_in(tree: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(tree, dict):
        return [at]
    return [at, *(p for key, value in tree.items() for p in paths_in(value, (*at, key)))]


def load_or_words(path: Path, environ: dict[str, str]) -> None:
    with contextlib.suppress(ConfigError):
        assert load_config(path, environ).config.home.is_absolute()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8")))
@example(raw=b"? \n? ")
@example(raw=b"!!timestamp x: 1")
@example(raw=b"a: !!int x")
@example(raw=b"a: !!float ''")
@example(raw=b"<<: 1")
@example(raw=b"a: !!bool x")
def test_any_bytes_are_a_configuration_or_words(folder: Path, raw: bytes) -> None:
    path = folder / "any.yaml"
    path.write_bytes(raw)
    load_or_words(path, {})


@pytest.mark.slow
@given(data=st.data())
def test_demo_profile_with_any_value_anywhere_is_a_configuration_or_words(
    folder: Path, repository: Path, data: st.DataObject
) -> None:
    tree = yaml.safe_load((repository / "config" / "lakehelm.yaml").read_text(encoding="utf-8"))
    *above, last = data.draw(st.sampled_from([p for p in paths_in(tree) if p]))
    node = tree
    for key in above:
        node = node[key]
    node[last] = data.draw(values)
    path = folder / "changed.yaml"
    path.write_text(yaml.safe_dump(tree, allow_unicode=True), encoding="utf-8")
    load_or_words(path, {"X": "7"})


@given(
    name=st.lists(
        st.sampled_from(["ENGINES", "trino", "PORT", "", "store", "X", "HOME"]), max_size=4
    ),
    text=st.text(max_size=12)
    | st.sampled_from(
        ["{a: ", "[1]", "{}", "null", "*a", "!!python/x 1", "!!bool x", "2024-13-45"]
    ),
)
def test_any_override_is_a_configuration_or_words(
    repository: Path, name: list[str], text: str
) -> None:
    environ = {"LAKEHELM__" + "__".join(name): text}
    load_or_words(repository / "config" / "lakehelm.yaml", environ)
