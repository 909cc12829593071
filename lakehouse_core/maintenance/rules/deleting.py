"""Rules for what deletes files: it cannot be undone."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lakehouse_core.catalog.location import local_path
from lakehouse_core.domain.errors import MetadataUnreadableError
from lakehouse_core.domain.maintenance import Kind
from lakehouse_core.maintenance.coordinate import orphan_age
from lakehouse_core.maintenance.look import table_folders
from lakehouse_core.maintenance.rules.base import Finding
from lakehouse_core.maintenance.rules.effect import expirable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse_core.maintenance.rules.base import Facts


class GcEnabled:
    """The table allows that its files are deleted."""

    id = "gc-enabled"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        value = facts.look.metadata.properties.get("gc.enabled", "true")
        if value.strip().lower() == "true":
            return None
        return Finding(
            rule=self.id,
            verdict="refuse",
            message=f"The table says gc.enabled={value}: its files may belong to another table too",
        )


class OwnLocation:
    """No other table keeps files in the table's folders, and paths mean what they say."""

    id = "own-location"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        try:
            return self._shared(facts) or self._misleading(facts)
        except (MetadataUnreadableError, OSError, ValueError) as error:
            return self._refuse(f"It cannot be told whose files are whose: {error}")

    def _shared(self, facts: Facts) -> Finding | None:
        own = _resolved(table_folders(facts.look.metadata))
        for table_id, folders in facts.folders.items():
            if table_id == facts.action.table_id:
                continue
            for other in _resolved(folders):
                if any(_overlap(one, other) for one in own):
                    return self._refuse(
                        f"Table {table_id} keeps files in {other}, which is a folder of this "
                        "table too: what one does not need the other may"
                    )
        return None

    def _misleading(self, facts: Facts) -> Finding | None:
        """A file recorded under another spelling of its path looks like an orphan."""
        if facts.action.kind is not Kind.REMOVE_ORPHANS:
            return None
        folder = local_path(facts.look.metadata.table_location)
        real = folder.resolve()
        if folder != real:
            return self._refuse(f"The table's folder {folder} is a link to {real}")
        for location in facts.look.files or ():
            path = local_path(location)
            is_plain = str(PurePosixPath(path)) == str(path) and ".." not in path.parts
            if is_plain and path.is_relative_to(folder) and not path.is_symlink():
                continue
            if not is_plain or path.resolve().is_relative_to(real):
                return self._refuse(
                    f"{location} is a file of the table under another spelling of its path; it "
                    "would be taken for an orphan"
                )
        return None

    def _refuse(self, message: str) -> Finding:
        return Finding(rule=self.id, verdict="refuse", message=message)


class Refs:
    """Branches and tags keep their snapshots, and their snapshots are there."""

    id = "refs"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        metadata = facts.look.metadata
        kept = {one.snapshot_id for one in metadata.snapshots}
        lost = {name: one for name, one in metadata.refs.items() if one not in kept}
        unguarded = set(metadata.refs.values()) - set(facts.guards.keep_snapshot_ids) - set(
            lost.values()
        )  # fmt: skip
        if not lost and not unguarded:
            return None
        name, snapshot = next(iter(lost.items()), ("a branch or tag", min(unguarded, default=0)))
        return Finding(
            rule=self.id,
            verdict="refuse",
            message=f"{name} keeps snapshot {snapshot}, which is not there or not guarded: nothing "
            "is deleted before that is understood",
        )


class SnapshotsInUse:
    """A snapshot that somebody reads or goes on from is not expired."""

    id = "snapshots-in-use"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        if facts.action.kind is not Kind.EXPIRE_SNAPSHOTS:
            return None
        if expirable(facts, keep=facts.guards.keep_snapshot_ids):
            return None
        if not expirable(facts, keep=()):
            return None  # there is nothing to expire at all, which another rule says
        readers = len(facts.activity.running)
        return Finding(
            rule=self.id,
            verdict="wait",
            message="All snapshots that are old enough are in use: by branches, tags or streams, "
            f"or by {readers} running queries",
        )


class OrphanAge:
    """Young files are left alone: a slow writer has not committed them yet."""

    id = "orphan-age"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        age, limit = orphan_age(facts.settings, facts.activity), facts.guards.older_than
        newest = max((one.timestamp_ms for one in facts.look.metadata.snapshots), default=0)
        if newest / 1000 > facts.now.timestamp() + 60:
            return Finding(
                rule=self.id,
                verdict="wait",
                message="The table has a commit from the future: this machine's clock, or a "
                "writer's, is wrong, and ages cannot be trusted",
            )
        if limit is not None and limit <= facts.now - age:
            return None
        return Finding(
            rule=self.id,
            verdict="refuse",
            message=f"Files younger than {age} may be in the hands of a writer; they are not "
            "removed",
        )


class LiveWriters:
    """While somebody writes to the table no file of it is called an orphan."""

    id = "live-writers"

    def evaluate(self, facts: Facts) -> Finding | None:
        """See `Rule`."""
        writers = [one for one in facts.activity.running if one.is_writing]
        if not writers:
            return self._silent_stream(facts)
        first = writers[0]
        return Finding(
            rule=self.id,
            verdict="wait",
            message=f"Query {first.query_id} on {first.engine_id} writes since "
            f"{first.started_at:%H:%M:%S}; its files are not committed yet",
        )

    def _silent_stream(self, facts: Facts) -> Finding | None:
        """A stream commits what it wrote since its last commit: that must not be old already."""
        limit = orphan_age(facts.settings, facts.activity) / 2
        for one in facts.activity.unended:
            if facts.now - one.last_at > limit:
                return Finding(
                    rule=self.id,
                    verdict="wait",
                    message=f"Stream {one.writer} runs and has not committed since "
                    f"{one.last_at:%Y-%m-%d %H:%M}: files it has written since look like orphans",
                )
        return None


def _resolved(folders: Iterable[str]) -> list[Path]:
    return [local_path(one).resolve() for one in folders]


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)
