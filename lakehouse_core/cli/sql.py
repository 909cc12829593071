"""`lakehelm sql`: what Lakehelm understands of SQL texts."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from json import dumps, loads
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakehouse_core.cli.judging import Judge
from lakehouse_core.cli.options import EngineOption, LimitOption, WindowOption
from lakehouse_core.cli.output import ConfigFile, JsonFlag, Output, QuietFlag, load
from lakehouse_core.domain.clock import utc_now
from lakehouse_core.domain.query import StatementKind
from lakehouse_core.sql import Inspector
from lakehouse_core.views.filters import Filters
from lakehouse_core.views.window import DEFAULT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from lakehouse_core.sql import Inspection

app = typer.Typer(no_args_is_help=True, help="Understand SQL: templates, tables, columns.")

DEFAULT_DIALECT = "trino"


@app.callback()
def sql() -> None:
    """Understand SQL: templates, tables, columns."""


@app.command()
def inspect(
    dialect: Annotated[
        str, typer.Option(help="Dialect of lines that name none (sqlglot's names).")
    ] = DEFAULT_DIALECT,
    translate_to: Annotated[
        str | None, typer.Option("--translate-to", help="Translate each statement to this dialect.")
    ] = None,
    guard: Annotated[
        str | None, typer.Option("--guard", help="Say whether this role may run each statement.")
    ] = None,
    json: JsonFlag = False,
    config: ConfigFile = None,
) -> None:
    """Read one JSON object per line, print one JSON object per line.

    In: {"sql": "SELECT …", "dialect": "trino"}; optional keys are default_catalog,
    default_namespace (a list of texts) and schema (an object: table to list of columns).

    Out: template_id, template, kind, tables, columns (each with table, column, role), error;
    with "literals": true in the request also predicates (each with its typed values).
    --translate-to adds translated, translation_outcome (identical, translated, doubtful, failed)
    and reason; --guard adds allowed, rule and reason, for the translated text when both are given.

    A line that cannot be read gets an object with an error; nothing stops the command but the
    end of its input.
    """
    del json  # it never prints anything else
    out = sys.stdout
    judge = Judge.asked_for(translate_to, guard, config)
    try:
        for answer in answers(sys.stdin.buffer, Inspector(), dialect, judge):
            out.write(dumps(answer) + "\n")  # ASCII only: any terminal, any pipe
            out.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`); nothing may be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def answers(
    lines: BinaryIO, inspector: Inspector, default_dialect: str, judge: Judge | None = None
) -> Iterator[dict[str, Any]]:
    """One answer per line of input."""
    for line in lines:
        request, problem = _request(line)
        answer = _refused(problem) if problem else _inspected(request, inspector, default_dialect)
        if judge is not None:
            dialect = (request or {}).get("dialect") or default_dialect
            judge.add_to(answer, request, dialect)
        yield answer


def _request(line: bytes) -> tuple[dict[str, Any] | None, str | None]:
    """What a line asks for, or what is wrong with it."""
    try:
        request = loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        return None, f"not a JSON object: {error}"
    problem = _problem(request)
    return (request, None) if problem is None else (None, problem)


def _inspected(request: Any, inspector: Inspector, default_dialect: str) -> dict[str, Any]:
    found = inspector.inspect(
        request["sql"],
        request.get("dialect") or default_dialect,
        default_catalog=request.get("default_catalog"),
        default_namespace=tuple(request.get("default_namespace") or ()),
        schema=request.get("schema"),
        literals=request.get("literals") is True,
    )
    return _plain(found)


@app.command()
def unparsed(  # noqa: PLR0913 one option per filter
    *,
    window: WindowOption = DEFAULT_WINDOW,
    engine: EngineOption = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="List statements of this reason only.")
    ] = None,
    limit: LimitOption = 50,
    json: JsonFlag = False,
    quiet: QuietFlag = False,
    config: ConfigFile = None,
) -> None:
    """List the statements that were not understood: how many, why, and which."""
    from lakehouse_core.bootstrap import open_store  # noqa: PLC0415 keeps --help fast
    from lakehouse_core.views.unparsed import list_unparsed  # noqa: PLC0415 as above

    out = Output(json=json, quiet=quiet)
    with open_store(load(config).config, role="reader") as store:
        filters = Filters(window=window, engine=engine)
        found = list_unparsed(store, filters, utc_now, reason=reason, limit=limit)
    if out.is_json:
        out.record({**asdict(found), "window": asdict(found.window), "ratio": found.ratio})
        return
    out.rows(found.reasons, title=f"Not understood, {found.window.label}")
    out.rows(
        found.statements,
        columns=("queries", "reason", "engines", "error", "template"),
        one_line=("template",),
        title="Statements",
    )
    out.rows(found.unresolved, title="Columns that no collected table explains")
    out.say(f"{found.unparsed} of {found.inspected} inspected queries were not understood")


def _problem(request: Any) -> str | None:
    """What is wrong with a request, or None."""
    if not isinstance(request, dict):
        return f"not a JSON object but a {type(request).__name__}"
    if not isinstance(request.get("sql"), str):
        return 'the key "sql" is missing or not a text'
    for key in ("dialect", "default_catalog"):
        if not isinstance(request.get(key), str | None):
            return f'"{key}" is not a text'
    if not _is_list_of_texts(request.get("default_namespace") or []):
        return '"default_namespace" is not a list of texts'
    schema = request.get("schema")
    is_schema = isinstance(schema, dict) and all(
        isinstance(columns, dict) or _is_list_of_texts(columns) for columns in schema.values()
    )
    if schema is not None and not is_schema:
        return '"schema" is not an object of table: [columns]'
    return None


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _plain(found: Inspection) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "template_id": found.template_id,
        "template": found.template,
        "kind": found.kind.value,
        "tables": list(found.tables),
        "columns": [
            {"table": use.table, "column": use.column, "role": use.role} for use in found.columns
        ],
        "error": found.error,
    }
    if found.predicates is not None:
        answer["predicates"] = [asdict(predicate) for predicate in found.predicates]
    return answer


def _refused(reason: str) -> dict[str, Any]:
    """The answer to a line that holds no statement."""
    return {
        "template_id": None,
        "template": None,
        "kind": StatementKind.OTHER.value,
        "tables": [],
        "columns": [],
        "error": reason,
    }
