"""Files that their owner alone can read: tokens, created once, and what holds other secrets."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import SecretStr

    from lakehouse_core.config.models import Config

TOKEN_BYTES = 32


def ensure_tokens(config: Config) -> list[Path]:
    """Create the token files that are referred to but missing; returns the new ones."""
    created = []
    store, gateway = config.store, config.gateway
    for ref in (store.writer_token, store.reader_token, gateway.ingest_token):
        path = _file_of(ref)
        if path is not None and not path.exists():
            write_private(path, secrets.token_urlsafe(TOKEN_BYTES) + "\n")
            created.append(path)
    return created


def _file_of(ref: SecretStr) -> Path | None:
    scheme, _, target = ref.get_secret_value().partition(":")
    return Path(target) if scheme == "file" and target else None


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    # The mode at creation: the file is never readable by others, not even for a moment.
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
