"""Becomes a supervised process: dies with its supervisor, may open many files.

    python child.py PARENT_PID COMMAND [ARGUMENT …]

Run as a file, without `site`: it is on the way of every start and needs nothing of ours. On Linux
the kernel kills the process when its parent is gone, even when the parent was killed with SIGKILL;
elsewhere the next `lakehelm up` clears away what was left.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

PR_SET_PDEATHSIG = 1
WANTED_FILES = 65_536  # Trino refuses to start below 4,096; many shells allow 1,024


def main(arguments: list[str]) -> None:
    """Prepare this process, then become the command."""
    parent, command = int(arguments[0]), arguments[1:]
    raise_file_limit()
    die_with_parent(parent)
    try:
        os.execvp(command[0], command)  # noqa: S606 the supervisor's own argument list
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        raise SystemExit(127) from error


def raise_file_limit() -> None:
    """Allow as many open files as the machine's administrator allows, up to what we want."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when the parent ends; exit if it has ended already."""
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        if prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            sys.stderr.write("the kernel refused to tie this process to its supervisor\n")
    if os.getppid() != parent:
        raise SystemExit(f"supervisor {parent} is gone")


if __name__ == "__main__":
    main(sys.argv[1:])
