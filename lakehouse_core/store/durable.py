"""Files that survive: nothing is acknowledged before it is on the disk."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_file(source: Path, target: Path) -> None:
    """Copy so that the target is either the old file or all of the new one."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.copyfile(source, partial)
    sync(partial)
    partial.replace(target)
    sync(target.parent)
