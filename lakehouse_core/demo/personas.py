"""Who works with the demo lakehouse, under which names and tags."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a persona does all day."""

    BI = "bi"  # dashboards: few templates, again and again, other literals each time
    ANALYST = "analyst"  # questions that come to mind, some of them mistyped
    ETL = "etl"  # pipelines: small writes at a steady pace


@dataclass(frozen=True, slots=True)
class Persona:
    """Somebody who sends statements.

    Attributes:
        is_routed: sends them to the one SQL endpoint, where there is one; the others know the
            engines and ask these directly.
    """

    role: Role
    user: str
    source: str
    team: str
    is_routed: bool = False

    def tags(self, what: str) -> tuple[str, ...]:
        """The tags of one statement."""
        kind = {Role.BI: "dashboard", Role.ANALYST: "question", Role.ETL: "pipeline"}[self.role]
        return (f"team:{self.team}", f"{kind}:{what}")


PERSONAS: tuple[Persona, ...] = (
    Persona(Role.BI, "bi-growth", "superset", "growth", is_routed=True),
    Persona(Role.BI, "bi-finance", "metabase", "finance"),
    Persona(Role.BI, "bi-operations", "superset", "operations"),
    Persona(Role.ANALYST, "ana", "jupyter", "growth", is_routed=True),
    Persona(Role.ANALYST, "bruno", "dbeaver", "finance", is_routed=True),
    Persona(Role.ANALYST, "chidi", "jupyter", "research", is_routed=True),
    Persona(Role.ETL, "etl-events", "airflow", "platform"),
    Persona(Role.ETL, "etl-orders", "airflow", "platform"),
)


def personas_of(role: Role) -> tuple[Persona, ...]:
    """The personas of a role."""
    return tuple(persona for persona in PERSONAS if persona.role is role)
