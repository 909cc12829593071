"""Machines made for tests: fake Javas that answer as real ones do, caches of their own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lakehouse_core.config.environment import Machine, read_machine

if TYPE_CHECKING:
    from pathlib import Path

# Answers `-version`; otherwise plays Ivy: `$FAKE_IVY` says what happens to the file asked for.
SCRIPT = """#!/bin/sh
if [ "$1" = "-version" ]; then echo '{version_line}' >&2; exit 0; fi
for last; do :; done
out=$(dirname "$last")
cache=$(dirname "$out")/cache
mkdir -p "$out" "$cache"
case "$FAKE_IVY" in
  offline) echo "  ::  io.trino#x;1: java.net.UnknownHostException: somewhere"; exit 1 ;;
  stall) echo half > "$cache/file.part"; exec sleep 600 ;;
  *) cp "$FAKE_IVY" "$cache/" && cp "$FAKE_IVY" "$out/" ;;
esac
"""


def fake_java(home: Path, version: str) -> Path:
    """A folder that looks like a JDK and prints a version as OpenJDK does."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    line = f'openjdk version "{version}" 2025-04-15'
    executable.write_text(SCRIPT.format(version_line=line), encoding="utf-8")
    executable.chmod(0o755)
    return home


def machine(tmp_path: Path, **variables: object) -> Machine:
    """A machine without any Java but those named in the variables."""
    plain = {
        "PATH": f"/usr/bin{os.pathsep}/bin",
        "LAKEHELM_CACHE": str(tmp_path / "cache"),
        "LAKEHELM_JAVA_DIRS": "",
    }
    return read_machine(plain | {name: str(value) for name, value in variables.items()})
