"""The command line in this process, on a store that is served."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse_core.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse_core.store.owner import OwnerStore
    from tests.ui.conftest import Place


@dataclass(frozen=True)
class Home:
    """A place whose owner the test can reach."""

    place: Place
    owner: OwnerStore


def command_line(
    environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """What runs a command there: its exit code, output and errors."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    def command(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(args)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return command


def reading(run: Callable[..., tuple[int, str, str]]) -> Callable[..., Any]:
    """What runs a command that must succeed, and reads its JSON."""

    def command(*args: str) -> Any:
        code, out, err = run(*args, "--json")
        assert code == 0, err
        return json.loads(out)

    return command
