"""A region with one workgroup, in the hands of a test."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from collectors.athena.config import AthenaSettings, AwsKeys
from collectors.athena.source import AthenaSource
from collectors.understanding import Understanding
from lakehouse_core.domain.query import EngineId
from tests.contract.sources.cloud import REGION, Cloud
from tests.contract.sources.worlds import BYTES, SQL
from tests.factories import NOW

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from collectors.base import Source

KEYS = AwsKeys(access_key_id="testing", secret_access_key="testing")


class AthenaWorld:
    """Athena as moto has it, on loopback."""

    def __init__(self, _folder: Path) -> None:
        self.cloud = Cloud()
        self.place = self.cloud.url
        self.now = NOW

    def source(self) -> Source:
        return athena_source(self.place, now=self.now)

    def run(self, number: int, at: datetime = NOW) -> str:
        return self.begin(number, at)()

    def begin(self, number: int, at: datetime = NOW) -> Callable[[], str]:
        query_id = f"00000000-0000-4000-8000-{number:012}"
        payload = self.cloud.add(query_id, at, Query=SQL.format(number))
        payload["Status"]["State"] = "RUNNING"
        payload["Statistics"]["DataScannedInBytes"] = BYTES // 2

        def end() -> str:
            payload["Status"]["State"] = "SUCCEEDED"
            payload["Statistics"]["DataScannedInBytes"] = BYTES
            return query_id

        return end

    def spoil(self) -> None:
        self.cloud.add("00000000-0000-4000-8000-999999999999", Statistics=None, Status={})

    def drop(self) -> None:
        self.now = NOW + timedelta(days=60)
        self.cloud.forget()

    def vanish(self) -> None:
        self.cloud.close()

    def close(self) -> None:
        self.cloud.close()


def athena_source(place: str, now: datetime = NOW) -> AthenaSource:
    """A source on a region, with small pages and small batches."""
    settings = AthenaSettings(
        engine_id=EngineId("athena"),
        region=REGION,
        workgroups=("primary",),
        catalog="lake",
        keys=KEYS,
        endpoint=place,
        call_timeout=timedelta(seconds=5),
        attempts=1,
        page=3,
        batch_queries=3,
    )
    return AthenaSource(settings, Understanding(), lambda: now)
