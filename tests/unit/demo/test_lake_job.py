"""The lake's builder as far as it goes without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs import demo_lake

if TYPE_CHECKING:
    from pathlib import Path


def write_plan(tmp_path: Path, **given: Any) -> Path:
    plan = {
        "conf": {},
        "master": "local[2]",
        "scale": 0.01,
        "seed": 42,
        "work_dir": str(tmp_path / "work"),
        "marker": str(tmp_path / "lake" / "BUILT.json"),
        **given,
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    return path


def write_marker(tmp_path: Path, **given: Any) -> None:
    marker = {
        "format": demo_lake.FORMAT,
        "scale": 0.01,
        "seed": 42,
        "anchor": demo_lake.DEFAULT_ANCHOR,
        **given,
    }
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "BUILT.json").write_text(json.dumps(marker))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[demo_lake.Plan]:
    """The plans that were carried out."""
    plans: list[demo_lake.Plan] = []
    monkeypatch.setattr(demo_lake, "build", plans.append)
    return plans


def test_a_lake_that_was_built_is_left_alone(
    tmp_path: Path, built: list[demo_lake.Plan], capsys: pytest.CaptureFixture[str]
) -> None:
    write_marker(tmp_path)

    assert demo_lake.main(["--plan", str(write_plan(tmp_path))]) == 0
    assert built == []
    assert "is built" in capsys.readouterr().out


@pytest.mark.parametrize(
    "other", [{"scale": 0.1}, {"seed": 43}, {"anchor": "2025-01-01T00:00:00Z"}, {"format": 0}]
)
def test_another_lake_is_built_anew_and_its_marker_goes_first(
    tmp_path: Path, built: list[demo_lake.Plan], other: dict[str, Any]
) -> None:
    write_marker(tmp_path, **other)

    demo_lake.main(["--plan", str(write_plan(tmp_path))])

    assert len(built) == 1
    assert not built[0].marker.exists()


def test_a_marker_that_cannot_be_read_is_none(tmp_path: Path, built: list[demo_lake.Plan]) -> None:
    write_marker(tmp_path)
    (tmp_path / "lake" / "BUILT.json").write_text('{"scale": 0.')

    demo_lake.main(["--plan", str(write_plan(tmp_path))])

    assert len(built) == 1


def test_the_marker_appears_whole(tmp_path: Path) -> None:
    plan = demo_lake.Plan.read(write_plan(tmp_path))
    plan.marker.parent.mkdir()

    demo_lake._write_marker(plan, {"lake.demo.events": {"rows": 7, "checksum": "1"}}, 1.23)

    assert list(plan.marker.parent.iterdir()) == [plan.marker]
    marker = json.loads(plan.marker.read_text())
    assert (marker["rows"], marker["seconds"], marker["scale"]) == (7, 1.2, 0.01)
    assert demo_lake.is_built(plan)
