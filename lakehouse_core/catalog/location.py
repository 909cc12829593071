"""Where Iceberg says a file is, and where this machine finds it.

Spark writes `file:/lake/x`, pyiceberg `file:///lake/x`; neither escapes anything.
"""

from __future__ import annotations

from pathlib import Path

from lakehouse_core.domain.errors import MetadataUnreadableError


def local_path(location: str) -> Path:
    """The file behind a location.

    Raises:
        MetadataUnreadableError: it is not a local file.
    """
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return Path(location)
    if scheme != "file":
        raise MetadataUnreadableError(
            f"Metadata file {location} cannot be read: only local files can, not {scheme!r}"
        )
    if rest.startswith("//"):
        rest = "/" + rest[2:].partition("/")[2]
    return Path(rest)


def read_file(location: str) -> bytes:
    """All of a metadata file.

    Raises:
        MetadataUnreadableError: it is missing or cannot be read; names it.
    """
    try:
        return local_path(location).read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(location, error) from error


def file_size(location: str) -> int:
    """How large a metadata file is.

    Raises:
        MetadataUnreadableError: it is missing or cannot be reached; names it.
    """
    try:
        return local_path(location).stat().st_size
    except (OSError, ValueError) as error:
        raise unreadable(location, error) from error


def unreadable(location: str, cause: object) -> MetadataUnreadableError:
    """The error for a file that is missing or broken."""
    if isinstance(cause, FileNotFoundError):
        return MetadataUnreadableError(f"Metadata file {location} is missing")
    reason = cause.strerror if isinstance(cause, OSError) and cause.strerror else cause
    return MetadataUnreadableError(f"Metadata file {location} cannot be read: {reason}")
