"""The guard and the translator as the router asks them."""

from __future__ import annotations

from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.domain.query import StatementKind, TemplateId
from lakehouse_core.governance.guard import Guard
from lakehouse_core.governance.roles import policies_of
from lakehouse_core.governance.routed import RoutedGuard, RoutedTranslator
from lakehouse_core.routing.request import Request, ScanEstimate, StatementFacts

GOVERNANCE = GovernanceConfig.model_validate(
    {
        "default_role": "analyst",
        "roles": {
            "engineer": {"groups": ["platform"], "statements": ["read", "write"]},
            "capped": {"users": ["carl"], "max_bytes": 100},
            "analyst": {"tables": ["lake.demo.*"]},
        },
    }
)
FACTS = StatementFacts(TemplateId("x"), StatementKind.SELECT)


class Estimates:
    """Says one number, and counts how often it was asked."""

    def __init__(self, number: int | None) -> None:
        self.number = number
        self.asked = 0

    def estimate(self, request: Request, facts: StatementFacts) -> ScanEstimate:
        del request, facts
        self.asked += 1
        basis = "the files of lake.demo.t are not in memory" if self.number is None else ""
        return ScanEstimate(bytes=self.number, basis=basis)


def allowed(sql: str, request: Request, estimates: Estimates | None = None) -> bool:
    guard = RoutedGuard(Guard(policies_of(GOVERNANCE)), GOVERNANCE, estimates)
    return guard.check(sql, request.dialect, request, FACTS).allowed


def test_role_comes_from_user_groups_and_wish() -> None:
    insert = "INSERT INTO lake.demo.t SELECT 1"
    eve = Request(sql=insert, dialect="trino", user="eve", groups=("platform",))
    assert allowed(insert, eve)
    assert not allowed(insert, Request(sql=insert, dialect="trino", user="bob"))
    assert not allowed(insert, Request(sql=insert, dialect="trino", user="bob", role="engineer"))
    proven = Request(sql=insert, dialect="trino", user="bob", proven_role="engineer")
    assert allowed(insert, proven)


def test_session_of_the_request_completes_names() -> None:
    sql = "SELECT * FROM t"
    request = Request(sql=sql, dialect="trino", user="bob", catalog="lake", schema="demo")
    assert allowed(sql, request)
    assert not allowed(sql, Request(sql=sql, dialect="trino", user="bob"))


def test_estimate_is_asked_for_only_where_it_limits() -> None:
    sql = "SELECT * FROM lake.demo.t"
    carl = Request(sql=sql, dialect="trino", user="carl")
    for number, expected in ((50, True), (500, False), (None, False)):
        estimates = Estimates(number)
        assert allowed(sql, carl, estimates) is expected
        assert estimates.asked == 1
    estimates = Estimates(500)
    assert allowed(sql, Request(sql=sql, dialect="trino", user="bob"), estimates)
    assert estimates.asked == 0


def test_why_nobody_knows_what_it_reads_is_said() -> None:
    sql = "SELECT * FROM lake.demo.t"
    guard = RoutedGuard(Guard(policies_of(GOVERNANCE)), GOVERNANCE, Estimates(None))
    found = guard.check(sql, "trino", Request(sql=sql, dialect="trino", user="carl"), FACTS)
    assert found.reason.endswith("(the files of lake.demo.t are not in memory)")


def test_translation_is_told_in_the_routers_words() -> None:
    translator = RoutedTranslator()
    sure = translator.translate("SELECT a FROM t", "trino", "spark", catalog="lake", schema="demo")
    assert (sure.sql, sure.outcome) == ("SELECT a FROM lake.demo.t", "translated")
    assert translator.translate("SELECT a / b FROM t", "trino", "duckdb").outcome == "doubtful"
    assert translator.translate("SELECT 1; SELECT 2", "trino", "duckdb").outcome == "fallback"
    assert translator.translate("SELECT 1", "trino", "trino").outcome == "not_needed"
