"""Translation between dialects that says when it is not sure.

translate("SELECT a FROM t ORDER BY a", "trino", "spark")
# Translation("SELECT a FROM t ORDER BY a NULLS LAST", Outcome.TRANSLATED, "")
"""

from __future__ import annotations

from lakehouse_core.sql.translate.hooks import Hook, hook
from lakehouse_core.sql.translate.records import Mode, Outcome, Setting, Translation, diff
from lakehouse_core.sql.translate.translator import Translator, translate

__all__ = [
    "Hook",
    "Mode",
    "Outcome",
    "Setting",
    "Translation",
    "Translator",
    "diff",
    "hook",
    "translate",
]
