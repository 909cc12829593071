"""A part of an archive is complete even when its files are stored in the parts left out."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from lakehouse_core.runtime.unpack import unpack_part

if TYPE_CHECKING:
    from pathlib import Path


def archive(path: Path, files: dict[str, bytes], links: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if name.endswith("launcher") else 0o644
            tar.addfile(member, io.BytesIO(content))
        for name, source in links.items():
            member = tarfile.TarInfo(name)
            member.type = tarfile.LNKTYPE
            member.linkname = source
            tar.addfile(member)
    return path


def test_links_into_parts_left_out_are_followed(tmp_path: Path) -> None:
    packed = archive(
        tmp_path / "server.tar.gz",
        {
            "server-1/bin/launcher": b"#!",
            "server-1/lib/a.jar": b"A",
            "server-1/plugin/bigquery/b.jar": b"B",
        },
        {
            "server-1/plugin/delta/b.jar": "server-1/plugin/bigquery/b.jar",
            "server-1/plugin/iceberg/a.jar": "server-1/lib/a.jar",
            "server-1/plugin/iceberg/b.jar": "server-1/plugin/delta/b.jar",
            "server-1/plugin/iceberg/hdfs/b.jar": "server-1/plugin/bigquery/b.jar",
        },
    )
    target = tmp_path / "out"
    assert unpack_part(packed, ("bin", "lib", "plugin/iceberg"), target) == 5
    found = {
        str(path.relative_to(target)): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file()
    }
    assert found == {
        "bin/launcher": b"#!",
        "lib/a.jar": b"A",
        "plugin/iceberg/a.jar": b"A",
        "plugin/iceberg/b.jar": b"B",
        "plugin/iceberg/hdfs/b.jar": b"B",
    }
    assert (target / "bin" / "launcher").stat().st_mode & 0o111


def test_a_name_that_leads_outside_is_refused(tmp_path: Path) -> None:
    packed = archive(tmp_path / "evil.tar.gz", {"server-1/lib/../../../evil": b"x"}, {})
    with pytest.raises(tarfile.TarError):
        unpack_part(packed, ("lib",), tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_a_link_to_nothing_is_an_error_and_not_a_missing_file(tmp_path: Path) -> None:
    packed = archive(tmp_path / "broken.tar.gz", {"s/lib/a": b"A"}, {"s/lib/b": "s/plugin/gone/b"})
    with pytest.raises(tarfile.ReadError, match="links to files it does not hold"):
        unpack_part(packed, ("lib",), tmp_path / "out")


def test_a_cut_archive_is_an_error(tmp_path: Path) -> None:
    packed = archive(tmp_path / "cut.tar.gz", {"s/lib/a": bytes(range(256)) * 4000}, {})
    packed.write_bytes(packed.read_bytes()[:-200])
    with pytest.raises((tarfile.TarError, EOFError)):
        unpack_part(packed, ("lib",), tmp_path / "out")
