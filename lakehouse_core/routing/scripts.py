"""Python of the operator's own: a router's `route(query, ctx)`, a strategy's `select_cluster(…)`.

A script is trusted like the configuration it stands in, and runs inside the gateway: one that
hangs holds up everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from lakehouse_core.domain.errors import ConfigError

if TYPE_CHECKING:
    from lakehouse_core.config.routing import Scripted

Function = Callable[..., Any]


def load_function(scripted: Scripted, name: str, where: str) -> Function:
    """The function a script defines; the script runs once, here.

    Args:
        scripted: the script, or the file it is in.
        name: of the function.
        where: the key of the script in the configuration, for messages.

    Raises:
        ConfigError: the file cannot be read, the script fails, or has no such function.
    """
    place, source = where, scripted.script
    if scripted.scriptFile is not None:
        place = f"{where}.scriptFile ({scripted.scriptFile})"
        try:
            source = scripted.scriptFile.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{place}: cannot be read: {error}") from error
    namespace: dict[str, Any] = {"__name__": "lakehelm_script"}
    try:
        exec(compile(source or "", place, "exec"), namespace)  # noqa: S102 the operator's own
    except Exception as error:  # anything may go wrong in there, and all of it is a bad script
        raise ConfigError(f"{place}: {type(error).__name__}: {error}") from error
    function = namespace.get(name)
    if not callable(function):
        raise ConfigError(f"{place}: defines no function {name}")
    return cast("Function", function)
