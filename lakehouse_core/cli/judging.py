"""What `lakehelm sql inspect` adds to an answer when a translation or a guard is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakehouse_core.cli.output import GLOBAL_OPTIONS, GlobalOptions, load
from lakehouse_core.config.governance import GovernanceConfig
from lakehouse_core.config.loader import DEFAULT_PATH, config_path
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.governance.roles import policies_of
from lakehouse_core.sql import dialect_names
from lakehouse_core.sql.guard import Asker, Gate, Known, Policy, Relation, Rule
from lakehouse_core.sql.translate import Outcome, Setting, Translation, translate
from lakehouse_core.sql.usage import Defaults

NO_TEXT = "there is no statement to look at"


@dataclass(slots=True)
class Judge:
    """Translates and guards the statement of a line.

    Attributes:
        translate_to: the target dialect; None: not asked for.
        policy: of the role; None: not asked for.
    """

    translate_to: str | None = None
    policy: Policy | None = None
    _gate: Gate | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.policy is not None:
            self._gate = Gate(self.policy)

    @classmethod
    def asked_for(
        cls, translate_to: str | None, role: str | None, config: Path | None
    ) -> Judge | None:
        """The judge of a command; None when nothing was asked for.

        Raises:
            ConfigError: there is no such dialect or role.
        """
        if translate_to is None and role is None:
            return None
        if translate_to is not None and translate_to.strip().lower() not in dialect_names():
            raise ConfigError(
                f"--translate-to: no dialect {translate_to}; one of {', '.join(dialect_names())}"
            )
        if role is None:
            return cls(translate_to)
        policies = policies_of(_governance(config))
        if role not in policies:
            raise ConfigError(
                f"--guard: no role {role}; there are {', '.join(policies) or 'none'}: see "
                "governance.roles in the configuration"
            )
        return cls(translate_to, policies[role])

    def add_to(
        self, answer: dict[str, Any], request: Mapping[str, Any] | None, dialect: str
    ) -> None:
        """Add the translation and the verdict of a line; None: the line holds no statement."""
        text, reason = (request or {}).get("sql"), ""
        if self.translate_to is not None:
            found = (
                Translation("", Outcome.FAILED, NO_TEXT)
                if request is None or text is None
                else _translation(request, dialect, self.translate_to)
            )
            is_text = found.outcome is not Outcome.FAILED
            text, reason = found.sql if is_text else None, found.reason
            answer |= {"translated": text, "translation_outcome": found.outcome.value}
            dialect = self.translate_to
        if self._gate is not None:
            allowed, rule, why = self._verdict(text, request, dialect)
            answer |= {"allowed": allowed, "rule": rule}
            reason = why or reason
        answer["reason"] = reason

    def _verdict(
        self, text: str | None, request: Mapping[str, Any] | None, dialect: str
    ) -> tuple[bool, str | None, str]:
        if text is None or request is None or self._gate is None or self.policy is None:
            return False, Rule.NOT_UNDERSTOOD.value, "" if request else NO_TEXT
        namespace = tuple(request.get("default_namespace") or ())
        asker = Asker(None, request.get("default_catalog"), namespace)
        gate = self._gate
        if request.get("schema") and self.policy.rules:
            relations = _relations(request["schema"], Defaults(asker.catalog, namespace))
            gate = Gate(self.policy, relations, known=Known(is_complete=False))
        verdict = gate.check(text, dialect, asker)
        return verdict.allowed, verdict.rule, verdict.reason


def _governance(config: Path | None) -> GovernanceConfig:
    """The configured roles; those that come with Lakehelm where nobody configured anything."""
    named = config or GLOBAL_OPTIONS.get(GlobalOptions()).config
    path = config_path(named)
    if named is None and path == Path(DEFAULT_PATH) and not path.exists():
        return GovernanceConfig()
    return load(config).config.governance


def _translation(request: Mapping[str, Any], dialect: str, target: str) -> Translation:
    namespace = request.get("default_namespace") or []
    setting = Setting(
        mode="best_effort",
        catalog=request.get("default_catalog"),
        schema=namespace[0] if len(namespace) == 1 else None,
        types=_types(request.get("schema")),
    )
    return translate(request["sql"], dialect, target, setting)


def _types(schema: Any) -> dict[str, dict[str, str]]:
    """Types of columns, where the schema of a line tells them."""
    return {
        table: {name: str(kind) for name, kind in columns.items()}
        for table, columns in (schema or {}).items()
        if isinstance(columns, dict)
    }


def _relations(schema: Mapping[str, Any], defaults: Defaults) -> dict[str, Relation]:
    return {
        ".".join(defaults.parts(tuple(name.lower().split(".")))): Relation(tuple(columns))
        for name, columns in schema.items()
    }
