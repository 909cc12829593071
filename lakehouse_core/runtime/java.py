"""Finding a Java for each engine: 17 or 21 for Spark, 24 or newer for Trino."""

from __future__ import annotations

import glob
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse_core.domain.errors import NotInstalledError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse_core.config.environment import Machine

SPARK_MAJORS = (17, 21)
TRINO_MIN_MAJOR = 24
_VERSION = re.compile(r'version "(?P<full>[^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java that answered `java -version`, and how it was found."""

    home: Path
    version: str
    major: int
    origin: str

    @property
    def executable(self) -> Path:
        """Its `java`."""
        return self.home / "bin" / "java"

    @property
    def suits_spark(self) -> bool:
        """Whether Spark 4.1 runs on it."""
        return self.major in SPARK_MAJORS

    @property
    def suits_trino(self) -> bool:
        """Whether Trino 476 runs on it."""
        return self.major >= TRINO_MIN_MAJOR


def parse_version(text: str) -> tuple[str, int] | None:
    """The version and its major number from what `java -version` prints, or None.

    >>> parse_version('openjdk version "1.8.0_402"')
    ('1.8.0_402', 8)
    """
    match = _VERSION.search(text)
    if match is None:
        return None
    numbers = re.findall(r"\d+", match["full"])
    if not numbers:
        return None
    # Up to Java 8 the major number was the second one: 1.8.0.
    old_style = numbers[0] == "1" and len(numbers) > 1
    return match["full"], int(numbers[1] if old_style else numbers[0])


def find_javas(machine: Machine) -> tuple[Java, ...]:
    """Every working Java: JAVA_HOME first, then the path, then the common folders."""
    found: dict[Path, Java] = {}
    for home, origin in _candidates(machine):
        real = home.resolve()
        if real in found or not (real / "bin" / "java").is_file():
            continue
        java = _ask(real, origin)
        if java is not None:
            found[real] = java
    return tuple(found.values())


def java_for_spark(javas: Sequence[Java]) -> Java:
    """The first Java that Spark runs on.

    Raises:
        NotInstalledError: says which were found instead.
    """
    for java in javas:
        if java.suits_spark:
            return java
    raise NotInstalledError(
        f"Spark needs Java 17 or 21; {_inventory(javas)}. {_how_to_install('JDK 17 or 21')}"
    )


def java_for_trino(javas: Sequence[Java]) -> Java:
    """The first Java that Trino runs on.

    Raises:
        NotInstalledError: says which were found instead.
    """
    for java in javas:
        if java.suits_trino:
            return java
    raise NotInstalledError(
        f"Trino needs Java {TRINO_MIN_MAJOR} or newer; {_inventory(javas)}. "
        f"{_how_to_install(f'JDK {TRINO_MIN_MAJOR} or newer')}"
    )


def any_java(javas: Sequence[Java]) -> Java:
    """Whatever Java there is; downloading needs no particular one.

    Raises:
        NotInstalledError: there is none.
    """
    for java in javas:
        return java
    raise NotInstalledError(f"No Java was found. {_how_to_install('JDK 17 or 21')}")


def _inventory(javas: Sequence[Java]) -> str:
    if not javas:
        return "no Java was found"
    return "found " + ", ".join(f"{java.version} in {java.home}" for java in javas)


def _how_to_install(what: str) -> str:
    return (
        f"Install a {what} and point JAVA_HOME to it, or put it on the PATH, "
        "or into /usr/lib/jvm (LAKEHELM_JAVA_DIRS names other folders)."
    )


def _candidates(machine: Machine) -> Iterator[tuple[Path, str]]:
    if machine.java_home is not None:
        yield machine.java_home, "JAVA_HOME"
    on_path = shutil.which("java", path=machine.path)
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent, "PATH"
    for pattern in machine.java_dirs:
        # Path.glob cannot take absolute patterns.
        for folder in sorted(glob.glob(str(Path(pattern).expanduser()))):  # noqa: PTH207
            yield Path(folder), pattern


def _ask(home: Path, origin: str) -> Java | None:
    try:
        answer = subprocess.run(
            [str(home / "bin" / "java"), "-version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # not a Java of this machine: wrong architecture, broken link, hangs
    parsed = parse_version(answer.stderr + answer.stdout)
    if answer.returncode != 0 or parsed is None:
        return None
    version, major = parsed
    return Java(home=home, version=version, major=major, origin=origin)
