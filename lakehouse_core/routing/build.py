"""From the configuration to a plan: the routing section, or the file it names, made ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse_core.catalog import open_catalog
from lakehouse_core.config.problems import dotted
from lakehouse_core.config.routing import Scripted
from lakehouse_core.config.routing_checks import check_routing, check_targets
from lakehouse_core.config.routing_file import read_routing_file
from lakehouse_core.domain.errors import ConfigError
from lakehouse_core.engines.registry import capabilities_of
from lakehouse_core.governance.guard import make_guard
from lakehouse_core.governance.relations import LakeRelations
from lakehouse_core.governance.routed import RoutedGuard, RoutedTranslator
from lakehouse_core.routing.decide import Plan, Ports
from lakehouse_core.routing.groups import lay_out
from lakehouse_core.routing.lifecycle import StoreFleet
from lakehouse_core.routing.router import Router
from lakehouse_core.routing.rules import compile_rules
from lakehouse_core.routing.scripts import load_function
from lakehouse_core.sql.translate import Setting
from lakehouse_core.sql.translate.hooks import hook

if TYPE_CHECKING:
    from lakehouse_core.config.models import Config
    from lakehouse_core.config.problems import Problem
    from lakehouse_core.config.routing import RoutingConfig
    from lakehouse_core.governance.guard import Guard
    from lakehouse_core.routing.request import Fleet, Predictor, ScanEstimator
    from lakehouse_core.sql.translate.records import Mode

_SCRIPTS = "routing.translation.pythonScripts"


def routing_of(config: Config) -> tuple[RoutingConfig, tuple[Problem, ...]]:
    """The routing that counts, and what is doubtful in it.

    Raises:
        ConfigError: the file it is in is wrong.
    """
    routing = config.routing
    if routing.file is None:
        return routing, ()
    found = read_routing_file(routing.file, config.engines)
    # Endpoints and translation may stand beside the file; those in it count more.
    beside = {"endpoints", "translation"} & routing.model_fields_set
    update = {
        name: getattr(routing, name)
        for name in beside
        if name not in found.routing.model_fields_set
    }
    return found.routing.model_copy(update=update), found.warnings


def make_plan(config: Config) -> Plan:
    """Read the routing and make it ready.

    Raises:
        ConfigError: something in it is wrong; says what, with file, line and key.
    """
    routing, _ = routing_of(config)
    found = ((name, capabilities_of(engine)) for name, engine in config.engines.items())
    capabilities = {name: can for name, can in found if can is not None}
    return Plan(
        rules=compile_rules(routing.routers),
        layout=lay_out(routing, config.engines, capabilities, config.catalogs),
        is_strict=routing.translation.is_strict,
        translates_all=bool(routing.translation.pythonScripts),
        source=str(config.routing.file or "the configuration"),
    )


def remake_plan(running: Config, fresh: Config) -> Plan:
    """The routing of a configuration that was read again, over the engines that are open.

    Args:
        running: what the process was started with.
        fresh: the same file as it is now; only its routing is taken.

    Raises:
        ConfigError: as `make_plan`; or a group names an engine that was not there at the start.
    """
    routing, _ = routing_of(fresh)
    doubtful = list(check_targets(routing))
    for finding in check_routing(routing, running.engines):
        if finding not in doubtful:
            raise ConfigError(
                f"routing.{dotted(finding.path)}: {finding.message}: it was added after this "
                "gateway was started; restart the gateway to use it"
            )
    return make_plan(running.model_copy(update={"routing": fresh.routing}))


def make_ports(
    config: Config,
    fleet: Fleet,
    *,
    estimator: ScanEstimator | None = None,
    predictor: Predictor | None = None,
    guard: Guard | None = None,
) -> Ports:
    """What a router decides with: translation, guards, profiles.

    Args:
        config: the configuration.
        fleet: states, health and load of the engines.
        estimator: says what statements read, for roles with a limit and for strategies.
        predictor: chooses by the past.
        guard: whoever keeps it up to date has one of their own.

    Raises:
        ConfigError: a role or a script of the translation is wrong.
    """
    routing, _ = routing_of(config)
    translation = routing.translation
    hooks = tuple(
        hook(
            load_function(Scripted(script=script), "transform", f"{_SCRIPTS}[{index}]"),
            f"pythonScripts[{index}]",
        )
        for index, script in enumerate(translation.pythonScripts)
    )
    mode: Mode = "strict" if translation.is_strict else "best_effort"
    return Ports(
        fleet=fleet,
        translator=RoutedTranslator(Setting(mode=mode, hooks=hooks)),
        guard=RoutedGuard(guard or make_guard(config), config.governance, estimator),
        predictor=predictor,
        estimator=estimator,
        per_terabyte_usd=config.prices.tb_scanned,
    )


def make_router(
    config: Config, estimator: ScanEstimator | None = None, predictor: Predictor | None = None
) -> Router:
    """A router of its own for a command; the gateway keeps one for all its clients.

    Raises:
        ConfigError: as `make_plan` and `make_ports`.
    """
    fleet, guard = StoreFleet(config.agents.probe_every), make_guard(config)
    if guard.needs_relations:
        catalogs = {name: open_catalog(name, catalog) for name, catalog in config.catalogs.items()}
        LakeRelations(catalogs).tell(guard)
    ports = make_ports(config, fleet, estimator=estimator, guard=guard, predictor=predictor)
    return Router(make_plan(config), ports)
