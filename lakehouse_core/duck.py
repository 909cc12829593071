"""The one way to open DuckDB: extensions come from installed wheels, never from the network.

Each `duckdb-extension-<name>` package carries the signed binary of one DuckDB release. It is loaded
by its path; signature checks stay on, downloads stay off.

    connection = connect(extensions=("iceberg",))
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from lakehouse_core.domain.errors import NotInstalledError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Setting = str | bool | int | float | list[str]

# What an extension needs loaded before it: it would otherwise try to download it.
_REQUIRES = {"iceberg": ("avro",), "quack": ("httpfs",)}

_NO_DOWNLOADS: dict[str, Setting] = {
    "allow_unsigned_extensions": False,
    "allow_community_extensions": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def connect(
    path: str | Path = ":memory:",
    *,
    extensions: Sequence[str] = (),
    config: Mapping[str, Setting] | None = None,
    read_only: bool = False,
) -> duckdb.DuckDBPyConnection:
    """Open a database with the named extensions; the session's time zone is UTC.

    Args:
        path: a database file, or `:memory:`.
        extensions: names as in `duckdb_extension_<name>`; what they need is loaded first.
        config: further settings of the database instance.
        read_only: open the file for reading only.

    Raises:
        NotInstalledError: an extension's wheel is missing or fits another DuckDB release.
        duckdb.Error: the file cannot be opened; the caller knows what the file means.
    """
    settings: dict[str, Setting] = {**_NO_DOWNLOADS, **(config or {})}
    connection = duckdb.connect(str(path), read_only=read_only, config=settings)
    try:
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        # After two seconds it would be drawn on standard output, into JSON and logs.
        connection.execute("SET enable_progress_bar = false")
        load(connection, extensions)
    except BaseException:
        connection.close()
        raise
    return connection


def load(connection: duckdb.DuckDBPyConnection, extensions: Sequence[str]) -> None:
    """Load extensions, and first what they need.

    Raises:
        NotInstalledError: an extension's wheel is missing or fits another DuckDB release.
    """
    for file in [extension_path(name) for name in _with_requirements(extensions)]:
        connection.load_extension(str(file))


def extension_path(name: str) -> Path:
    """The file of an extension for the running DuckDB release.

    Raises:
        NotInstalledError: says which package to install.
    """
    package = f"duckdb_extension_{name}"
    wanted = f"duckdb-extension-{name}=={duckdb.__version__}"
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise NotInstalledError(
            f"DuckDB extension {name!r} is not installed: run `pip install {wanted}`"
        )
    folder = Path(spec.origin).parent
    file = folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
    if not file.is_file():
        raise NotInstalledError(
            f"Package {package} in {folder} has no binary for DuckDB {duckdb.__version__}: "
            f"run `pip install {wanted}`"
        )
    return file


def _with_requirements(names: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        for wanted in (*_REQUIRES.get(name, ()), name):
            if wanted not in seen:
                seen.add(wanted)
                yield wanted
