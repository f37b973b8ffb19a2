"""Running of migrations: brings tables from one revision to another,
or says which statements would.

This is Alembic without its `env.py`: that one is found through variables of a module, so that two threads of a process
could not migrate two databases. Here everything is handed over, to each revision as well: `upgrade(op=…, names=…)`.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, inspect

from smg_migrations.errors import MigrationError
from smg_migrations.kinds import extra_column
from smg_migrations.locks import only_one
from smg_migrations.names import Names, owner_of

VERSION_TABLE: Final = "smg_schema_version"
BASE: Final = "base"
HEAD: Final = "head"
WAIT_S: Final = 60
_TABLES: Final = (
    "conversations",
    "conversation_items",
    "conversation_item_links",
    "responses",
    "item_locations",
    "response_events",
    "idempotency_keys",
)


@dataclass(frozen=True, slots=True)
class Moved:
    """Result of a migration: from which revision to which; a revision is
    empty where there are no tables.
    """

    found: str
    reached: str
    steps: tuple[str, ...] = ()
    """What was done, or would have been, in order, in words."""


class History:
    """All revisions there are, in their one order."""

    def __init__(self, folder: Path | None = None) -> None:
        self.script: Final = ScriptDirectory(str(folder or Path(__file__).parent))
        newest_first = list(self.script.walk_revisions())
        self._words: Final = {each.revision: each.doc for each in reversed(newest_first)}
        self.revisions: Final[Sequence[str]] = tuple(self._words)

    @property
    def head(self) -> str:
        """The newest."""
        return self.revisions[-1]

    def named(self, revision: str) -> str:
        """Return the revision that was named, empty for none at all;
        MigrationError if there is no such.
        """
        if revision in (BASE, ""):
            return ""
        if revision == HEAD:
            return self.head
        if revision not in self._words:
            known = ", ".join(self.revisions)
            raise MigrationError(f"there is no revision {revision!r}: {BASE}, {known}, {HEAD}")
        return revision

    def between(self, found: str, to: str) -> tuple[str, ...]:
        """Return what has to be done to get from one to the other, in words."""
        low, high = sorted((self._place(found), self._place(to)))
        steps = self.revisions[low:high]
        if self._place(to) >= self._place(found):
            return tuple(f"{each}: {self._words[each]}" for each in steps)
        return tuple(f"undo {each}: {self._words[each]}" for each in reversed(steps))

    def goes_up(self, found: str, to: str) -> bool:
        """Return whether the one is not newer than the other. MigrationError if one is of a newer program."""
        return self._place(found) <= self._place(to)

    def knows(self, revision: str) -> bool:
        """Return whether it is one of these."""
        return revision == "" or revision in self._words

    def _place(self, revision: str) -> int:
        if not self.knows(revision):
            raise MigrationError(
                f"the tables are of revision {revision}, which this program does not know: it is older"
            )
        return self.revisions.index(revision) + 1 if revision else 0


def current(connection: Connection, names: Names) -> str:
    """Return the revision of the tables, empty if there are none."""
    heads = _context(connection, names).get_current_heads()
    if len(heads) > 1:
        raise MigrationError(f"the tables are of {len(heads)} revisions at once")
    return heads[0] if heads else ""


def planned(*, to: str = HEAD) -> Moved:
    """Return what an upgrade would do where there is nothing yet."""
    history = History()
    return Moved("", "", history.between("", history.named(to)))


def upgrade(
    connection: Connection,
    names: Names,
    *,
    to: str = HEAD,
    dry_run: bool = False,
    history: History | None = None,
) -> Moved:
    """Bring the tables up to a revision, and add columns of hooks that are missing.

    Tables that are newer than that, or than this program, stay as they are. `connection` has no transaction.
    """
    history = history or History()
    wanted = history.named(to)
    with _alone(connection, names) as working:
        found = current(working, names)
        if not history.knows(found) or not history.goes_up(found, wanted):
            return Moved(found, found)
        steps = history.between(found, wanted)
        if dry_run:
            return Moved(found, found, steps)
        _end_reading(working)
        _run(working, names, history, wanted, up=True)
        added = _add_extras(working, names) if wanted == history.head else ()
        return Moved(found, wanted, (*steps, *added))


def downgrade(
    connection: Connection,
    names: Names,
    *,
    to: str,
    dry_run: bool = False,
    history: History | None = None,
) -> Moved:
    """Bring the tables back to an older revision; what only newer ones can keep is lost."""
    history = history or History()
    wanted = history.named(to)
    with _alone(connection, names) as working:
        found = current(working, names)
        if history.goes_up(found, wanted):
            return Moved(found, found)
        steps = history.between(found, wanted)
        if dry_run:
            return Moved(found, found, steps)
        _end_reading(working)
        _run(working, names, history, wanted, up=False)
        return Moved(found, wanted, steps)


def stamp(connection: Connection, names: Names, *, to: str) -> Moved:
    """Write down that the tables are of a revision, and change nothing else."""
    history = History()
    wanted = history.named(to)
    with _alone(connection, names) as working:
        found = current(working, names)
        _end_reading(working)
        context = _context(working, names)
        with context.begin_transaction(_per_migration=True):
            # Whatever was there before, also what this program does not know; nothing public empties it.
            context._ensure_version_table(purge=True)
            context.stamp(history.script, wanted or BASE)
        return Moved(found, wanted)


def statements(dialect: str, names: Names, *, found: str = "", to: str = HEAD) -> str:
    """Return the statements that bring tables of one revision to another,
    to be run by an administrator.
    """
    history = History()
    start, wanted = history.named(found), history.named(to)
    up = history.goes_up(start, wanted)
    written = io.StringIO()
    context = MigrationContext.configure(
        dialect_name=dialect,
        opts=_options(names)
        | {
            "as_sql": True,
            "output_buffer": written,
            "starting_rev": start or BASE,
            "script": history.script,
            "fn": _steps(history, wanted, up=up),
            # Oracle's DDL ends every transaction anyway.
            "transactional_ddl": dialect != "oracle",
        },
    )
    with context.begin_transaction(), Operations.context(context) as op:
        context.run_migrations(op=op, names=names)
    return written.getvalue()


# ── Between this and Alembic ─────────────────────────────────────────────────


@contextmanager
def _alone(connection: Connection, names: Names) -> Iterator[Connection]:
    """Hold the lock, and give the connection to work with: another one, but for SQLite."""
    with only_one(connection, names, wait_s=WAIT_S):
        if connection.dialect.name == "sqlite":
            yield connection
            return
        with connection.engine.connect() as working:
            yield working
            working.commit()


def _end_reading(connection: Connection) -> None:
    """Alembic leaves a transaction alone that is there already: SQLite's stays, others are its own."""
    if connection.dialect.name != "sqlite":
        connection.rollback()


def _run(connection: Connection, names: Names, history: History, to: str, *, up: bool) -> None:
    context = _context(connection, names, fn=_steps(history, to, up=up), script=history.script)
    try:
        with context.begin_transaction(), Operations.context(context) as op:
            context.run_migrations(op=op, names=names)
    except CommandError as error:
        raise MigrationError(str(error)) from error


def _steps(history: History, to: str, *, up: bool) -> Any:
    script = history.script

    def steps(revision: Any, _context: Any) -> Any:
        # What Alembic's own commands call; it has no public name for it.
        if up:
            return script._upgrade_revs(to, revision)
        return script._downgrade_revs(to or BASE, revision)

    return steps


def _context(connection: Connection, names: Names, **options: Any) -> MigrationContext:
    return MigrationContext.configure(connection, opts=_options(names) | options)


def _options(names: Names) -> dict[str, Any]:
    return {
        "version_table": VERSION_TABLE,
        "version_table_schema": owner_of(names),
        "transaction_per_migration": True,
        "render_as_batch": True,
    }


def _add_extras(connection: Connection, names: Names) -> tuple[str, ...]:
    """Add columns of hooks that were named since the tables were made."""
    looked, context = inspect(connection), _context(connection, names)
    added = []
    with Operations.context(context) as op:
        for name in _TABLES:
            wanted = names.extra(name)
            if not wanted:
                continue
            table = names.table(name)
            there = {each["name"] for each in looked.get_columns(table, schema=owner_of(names))}
            for column in sorted(wanted.keys() - there):
                op.add_column(
                    table, extra_column(column, wanted[column]), schema=names.owner or None
                )
                added.append(f"column {table}.{column}")
    return tuple(added)
