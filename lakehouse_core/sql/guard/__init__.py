"""Guards: allow-lists on the tree of the text an engine would get; what is unknown is refused.

    gate = Gate()
    gate.check("SELECT * FROM lake.demo.customers", "trino", Policy(role="analyst"))

The engine's own lock stands behind it: read-only attach, file rules, a low-privilege OS user.
"""

from __future__ import annotations

from lakehouse_core.sql.guard.gate import Asker, Gate
from lakehouse_core.sql.guard.names import Known
from lakehouse_core.sql.guard.records import Policy, Relation, Rule, TableRule, Verdict

__all__ = ["Asker", "Gate", "Known", "Policy", "Relation", "Rule", "TableRule", "Verdict"]
