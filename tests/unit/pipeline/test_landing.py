from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.pipeline.errors import PipelineBusyError
from lakehouse_core.pipeline.landing import Export, Landing, Part
from lakehouse_core.pipeline.service import usable_chain
from lakehouse_core.pipeline.state import LakeState

if TYPE_CHECKING:
    from pathlib import Path


def land(landing: Landing, export_id: str, follows: str | None) -> Export:
    folder = landing.begin(export_id)
    (folder / "query_event-00000.parquet").write_bytes(b"rows")
    (folder / "known-query_event.parquet").write_bytes(b"hashes")
    part = Part(files=("query_event-00000.parquet",), rows=3, days=("2026-11-16",))
    export = Export(
        id=export_id,
        exported_at="2026-11-16T12:00:00+00:00",
        follows=follows,
        tables={"query_event": part},
        cursor={"query_event": {"since": None, "rows": 3, "digest": "7"}},
    )
    return landing.publish(folder, export)


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path / "landing")


def test_an_export_reads_back_as_it_was_published(landing: Landing) -> None:
    first, second = land(landing, "1", None), land(landing, "2", "1")
    assert landing.exports() == (first, second)
    assert landing.has_rows(first)


def test_an_export_that_was_killed_is_not_there_and_is_cleared_away(landing: Landing) -> None:
    left = landing.begin("1")
    (left / "query_event-00000.parquet").write_bytes(b"half")
    assert landing.exports() == ()
    landing.begin("2")
    assert not left.exists()


def test_settled_exports_leave_only_what_the_next_export_needs(landing: Landing) -> None:
    land(landing, "1", None)
    second, third = land(landing, "2", "1"), land(landing, "3", "2")
    landing.settle("2")
    assert landing.exports() == (second, third)
    assert not landing.has_rows(second)
    assert landing.known("2", "query_event").is_file()
    assert landing.has_rows(third)


def test_one_run_at_a_time(landing: Landing) -> None:
    with landing.locked():
        other = Landing(landing.folder_of("1").parent)
        with pytest.raises(PipelineBusyError, match="under way"), other.locked():
            pass
    with landing.locked():
        pass


def test_exports_that_go_on_from_the_lake_are_carried_on(landing: Landing) -> None:
    exports = (land(landing, "1", None), land(landing, "2", "1"), land(landing, "3", "2"))
    assert usable_chain(landing, LakeState(through=None)) == exports
    assert usable_chain(landing, LakeState(through="1")) == exports
    landing.settle("3")
    assert usable_chain(landing, LakeState(through="3")) == exports[2:]


@pytest.mark.parametrize("through", [None, "0", "9"], ids=["rebuilt", "rolled back", "replaced"])
def test_a_lake_that_lost_exports_gets_them_anew(landing: Landing, through: str | None) -> None:
    land(landing, "1", None)
    land(landing, "2", "1")
    landing.settle("1")
    assert usable_chain(landing, LakeState(through=through)) == ()
    assert landing.exports() == ()


def test_lost_files_break_the_chain(landing: Landing) -> None:
    land(landing, "1", None)
    (landing.folder_of("1") / "query_event-00000.parquet").unlink()
    assert usable_chain(landing, LakeState(through=None)) == ()
