"""What every section of the configuration has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of all sections: unknown keys are refused, values never change after loading."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        coerce_numbers_to_str=True,  # `user: 123` is a name to the person who wrote it
        hide_input_in_errors=True,  # a secret must not reach a log through a stray traceback
    )
