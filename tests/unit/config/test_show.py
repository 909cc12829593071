"""The configuration as it is shown: complete, with origins, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.config.show import settings
from tests.unit.config.conftest import BASE

if TYPE_CHECKING:
    from tests.unit.config.conftest import Load


def test_every_value_is_shown_as_it_is_written_with_its_origin(load: Load) -> None:
    shown = {s.key: s for s in settings(load(BASE + "store: {retention: 24h}\n"))}
    assert (shown["store.retention"].value, shown["store.retention"].origin) == (
        "1d",
        "config/test.yaml:7",
    )
    assert (shown["store.memory_limit"].value, shown["store.memory_limit"].origin) == (
        "2GiB",
        "default",
    )


def test_secrets_are_shown_as_references_only(load: Load) -> None:
    loaded = load(
        BASE
        + "  spark: {type: spark, catalog: lake, conf: {spark.hadoop.fs.s3a.secret.key: hunter2}}\n"
        + "store: {writer_token: 'env:WRITER'}\n",
        WRITER="hunter2",
    )
    shown = {s.key: s for s in settings(loaded)}
    assert shown["store.writer_token"].value == "env:WRITER"
    assert shown["store.writer_token"].is_secret
    assert not shown["store.port"].is_secret
    assert "hunter2" not in repr(shown)
