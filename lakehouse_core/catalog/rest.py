"""The Iceberg REST catalog: names by pages, locations by one cheap question per table.

The protocol has no list of locations. Each table is asked for without its snapshots
(`snapshots=refs`) and with the ETag of the last answer, so that a table that did not change costs
an empty answer; several are asked at a time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lakehouse_core.catalog.port import Survey
from lakehouse_core.catalog.properties import rest_properties
from lakehouse_core.catalog.rest_http import MissingError, RestHttp, ServerFaultError
from lakehouse_core.domain.errors import (
    CatalogError,
    CatalogRefusedError,
    CatalogUnavailableError,
    MetadataUnreadableError,
    TableGoneError,
)
from lakehouse_core.domain.table import TableName, join_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyiceberg.catalog import Catalog

    from lakehouse_core.config.catalogs import RestCatalog

_PAGE_SIZE = 1_000
_LIGHT = {"snapshots": "refs"}
# What servers call a table that is listed but is none of Iceberg's, or was dropped meanwhile; any
# other 404 is about a file of the table.
_GONE = ("", "NoSuchTableException", "NoSuchNamespaceException", "NoSuchIcebergTableException")

Levels = tuple[str, ...]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known of one table: where it is, or why that cannot be told; neither: it is gone."""

    location: str | None = None
    reason: str | None = None
    is_server_fault: bool = False


class RestLake:
    """A `LakeCatalog` behind the REST protocol; safe to use from many threads."""

    def __init__(self, name: str, config: RestCatalog, http: RestHttp | None = None) -> None:
        self.name = name
        self._config = config
        self._http = http or RestHttp(config)
        self._known: dict[TableName, tuple[str, str]] = {}  # ETag and location

    def namespaces(self) -> list[Levels]:
        """See `LakeCatalog.namespaces`: one question per namespace, for those below it."""
        return self._all_namespaces()[0]

    def tables(self, namespace: Levels | None = None) -> dict[TableName, str]:
        """See `LakeCatalog.tables`."""
        return self.survey(namespace).tables

    def survey(self, namespace: Levels | None = None) -> Survey:
        """See `LakeCatalog.survey`: one question per table."""
        namespaces, closed = self._all_namespaces() if namespace is None else ([namespace], {})
        names: list[TableName] = []
        for one, listed in zip(namespaces, self._each(self._listed, namespaces), strict=True):
            if isinstance(listed, CatalogRefusedError):
                closed[one] = str(listed)
            else:
                names += listed
        if namespaces and all(one in closed for one in namespaces):
            raise CatalogRefusedError(closed[namespaces[0]])
        names = sorted(set(names))
        tables: dict[TableName, str] = {}
        unreadable: dict[TableName, str] = {}
        faults = []
        for table, found in zip(names, self._each(self._look, names), strict=True):
            if found.location is not None:
                tables[table] = found.location
            elif found.reason is not None:
                unreadable[table] = found.reason
                faults += [found.reason] if found.is_server_fault else []
        if faults and not tables:  # then it is not the tables that are broken
            raise CatalogUnavailableError(faults[0])
        if namespace is None:
            self._known = {one: kept for one, kept in self._known.items() if one in tables}
        return Survey(tables=tables, unreadable=unreadable, closed=closed)

    def metadata_location(self, table: TableName) -> str:
        """See `LakeCatalog.metadata_location`: one question."""
        try:
            return self._location(table)
        except MissingError as error:
            if error.kind in _GONE:
                raise TableGoneError(
                    f"Table {table} is not in catalog {self.name!r} ({self._config.uri})"
                ) from error
            raise MetadataUnreadableError(f"Table {table} cannot be read: {error}") from error

    def iceberg(self) -> Catalog:
        """See `LakeCatalog.iceberg`.

        Raises:
            CatalogUnavailableError: the catalog does not answer.
            CatalogRefusedError: it does not let us in.
        """
        from pyiceberg.catalog.rest import RestCatalog as IcebergRest  # noqa: PLC0415 seldom needed
        from pyiceberg.exceptions import (  # noqa: PLC0415 as above
            ForbiddenError,
            OAuthError,
            RESTError,
            UnauthorizedError,
        )

        try:
            return IcebergRest(self.name, **rest_properties(self._config))
        except (UnauthorizedError, ForbiddenError, OAuthError) as error:
            raise CatalogRefusedError(
                f"{self._config.uri} does not let us in ({type(error).__name__}); set token or "
                "credential of the catalog"
            ) from error
        except (OSError, RESTError) as error:  # requests' errors are OSErrors
            raise CatalogUnavailableError(
                f"{self._config.uri} does not answer ({type(error).__name__}); check that the "
                "catalog is running and that its uri is right"
            ) from error

    def close(self) -> None:
        """See `LakeCatalog.close`."""
        self._http.close()

    def _all_namespaces(self) -> tuple[list[Levels], dict[Levels, str]]:
        """All of them, and those whose insides we may not see, with the reason."""
        found: set[Levels] = set()
        closed: dict[Levels, str] = {}
        level: list[Levels] = [()]
        while level:
            below: set[Levels] = set()
            for parent, children in zip(level, self._each(self._children, level), strict=True):
                if isinstance(children, CatalogRefusedError):
                    closed[parent] = str(children)
                else:
                    below.update(children)
            level = sorted(below - found)
            found |= below
        return sorted(found), closed

    def _children(self, parent: Levels) -> list[Levels] | CatalogRefusedError:
        params = {"parent": self._http.joined(parent)} if parent else {}
        try:
            told = list(self._pages(("namespaces",), params, "namespaces"))
        except CatalogUnavailableError:
            raise
        except CatalogError as error:
            if not parent:
                raise
            # Else it was dropped meanwhile, or the server does not nest.
            return error if isinstance(error, CatalogRefusedError) else []
        children = {tuple(map(str, one)) for one in told}
        # Servers that do not nest answer every question with the same list.
        return [one for one in children if one[:-1] == parent]

    def _listed(self, namespace: Levels) -> list[TableName] | CatalogRefusedError:
        try:
            told = list(self._pages(("namespaces", namespace, "tables"), {}, "identifiers"))
        except MissingError:
            return []  # the namespace was dropped meanwhile
        except CatalogRefusedError as error:
            return error
        return [
            TableName(self.name, tuple(map(str, one.get("namespace") or namespace)), one["name"])
            for one in told
        ]

    def _pages(
        self, path: tuple[str | Levels, ...], params: dict[str, str], key: str
    ) -> Iterator[Any]:
        """All items of a list, page by page; servers without pages give them at once."""
        seen: set[str] = set()
        token = ""
        while True:
            page = {"pageToken": token, "pageSize": str(_PAGE_SIZE)}
            body = self._http.get(path, {**params, **page}).body or {}
            yield from body.get(key) or ()
            token = body.get("next-page-token") or ""
            if not token:
                return
            if token in seen:
                raise CatalogError(
                    f"{self._config.uri} gives the same page of {key} again and again"
                )
            seen.add(token)

    def _look(self, table: TableName) -> _Found:
        try:
            return _Found(location=self._location(table))
        except MissingError as error:
            return _Found() if error.kind in _GONE else _Found(reason=str(error))
        except ServerFaultError as error:
            return _Found(reason=str(error), is_server_fault=True)
        except CatalogUnavailableError:
            raise
        except CatalogError as error:
            return _Found(reason=str(error))

    def _location(self, table: TableName) -> str:
        etag, known = self._known.get(table, ("", ""))
        path = ("namespaces", table.namespace, "tables", table.name)
        answer = self._http.get(path, _LIGHT, etag)
        if answer.body is None:
            return known
        location = answer.body.get("metadata-location")
        if not isinstance(location, str) or not location:
            raise MetadataUnreadableError(
                f"{self._config.uri} tells no metadata location of {join_name(table.namespace)}."
                f"{table.name}: it is not committed yet, or its metadata is no file"
            )
        if answer.etag:
            self._known[table] = (answer.etag, location)
        return location

    def _each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """The results in order, some at a time; the first error ends it."""
        todo = list(items)
        if len(todo) <= 1:
            return [work(one) for one in todo]
        pool = ThreadPoolExecutor(self._config.concurrency, thread_name_prefix="catalog")
        try:
            return list(pool.map(work, todo))
        finally:
            pool.shutdown(cancel_futures=True)
