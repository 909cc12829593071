"""What the machine says besides the configuration file: where caches and Java are.

These are facts of a machine, not of a lakehouse, so they are variables and not configuration keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping  # noqa: TC003 dataclass fields are read at run time
from dataclasses import dataclass
from pathlib import Path

COMMON_JAVA_DIRS: tuple[str, ...] = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/usr/local/openjdk*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Facts of this machine.

    Attributes:
        cache: where downloads are kept, outside the tree (`LAKEHELM_CACHE`).
        ivy_settings: an Ivy settings file that names a mirror (`LAKEHELM_IVY_SETTINGS`).
        java_home: `JAVA_HOME`, as it was set.
        path: `PATH`, as it was set.
        java_dirs: glob patterns of folders that may hold a JDK (`LAKEHELM_JAVA_DIRS`).
        variables: all variables; started processes inherit them.
    """

    cache: Path
    ivy_settings: Path | None
    java_home: Path | None
    path: str
    java_dirs: tuple[str, ...]
    variables: Mapping[str, str]


def read_machine(variables: Mapping[str, str] | None = None) -> Machine:
    """Read the facts from the process's variables, or from those given."""
    found = dict(os.environ if variables is None else variables)
    ivy_settings = found.get("LAKEHELM_IVY_SETTINGS")
    java_home = found.get("JAVA_HOME")
    java_dirs = found.get("LAKEHELM_JAVA_DIRS")
    return Machine(
        cache=Path(found.get("LAKEHELM_CACHE") or "~/.cache/lakehelm").expanduser().absolute(),
        ivy_settings=Path(ivy_settings).expanduser().absolute() if ivy_settings else None,
        java_home=Path(java_home).expanduser() if java_home else None,
        path=found.get("PATH", ""),
        java_dirs=(
            COMMON_JAVA_DIRS
            if java_dirs is None
            else tuple(part for part in java_dirs.split(os.pathsep) if part)
        ),
        variables=found,
    )
