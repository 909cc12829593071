"""SQLAlchemy's dialect for Trino, which asks for names in its own ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

if TYPE_CHECKING:
    from tests.integration.gateway.harness import Gateway

pytestmark = [pytest.mark.duckdb, pytest.mark.slow]


def test_tables_are_reflected_and_read(gateway: Gateway) -> None:
    engine = sa.create_engine(f"trino://ana@127.0.0.1:{gateway.port.port}/lake/tpch")
    looked = sa.inspect(engine)
    assert "tpch" in looked.get_schema_names()
    assert {"nation", "lineitem"} <= set(looked.get_table_names())
    assert looked.has_table("nation")
    assert not looked.has_table("nothing")
    columns = {column["name"]: column["type"] for column in looked.get_columns("orders")}
    assert isinstance(columns["o_orderdate"], sa.Date)
    assert isinstance(columns["o_totalprice"], sa.DECIMAL)
    nation = sa.Table("nation", sa.MetaData(), autoload_with=engine)
    wanted = sa.select(nation.c.n_name).where(nation.c.n_nationkey == 7)
    with engine.connect() as connection:
        assert connection.execute(wanted).scalar_one() == "GERMANY"
    engine.dispose()
