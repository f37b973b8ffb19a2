"""Migration of a store's tables to the revision that this code needs, or back (Alembic).

Only callers that migrate import this: Alembic takes long to load.

Everything is a plain function of a connection, in `smg_migrations`; here is what connects. SQLite works in a thread;
servers are waited for by their own driver, under the event loop that is there (`asyncio.run` where there is none).
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from smg_migrations import running
from smg_migrations.errors import MigrationError
from smg_migrations.running import HEAD, History, Moved
from smg_storage.errors import OldTablesError, StoreError, StoreErrorKind
from smg_storage.options import StoreOptions
from smg_storage.sql.database_urls import (
    make_private,
    oracle_engine,
    postgresql_engine,
    sqlite_path,
)
from smg_storage.sql.errors import code_of, is_ours, translated
from smg_storage.sql.schema.naming import Naming
from smg_storage.url import StoreUrl, StoreUrlError

T = TypeVar("T")

_STEP_S: Final = 3_600.0
"""A statement of a migration may take as long as a table is large."""
_WAITED: Final = frozenset({"55P03", "SQLITE_BUSY", "ORA-00054", "ORA-30006"})
"""What databases say when a lock was not had in time."""

_WITH_TABLES: Final = ("sqlite", "postgresql", "oracle")

Migrated = Moved
"""From where to where, and by which steps."""


def head() -> str:
    """Return the newest revision there is."""
    return History().head


class Called:
    """A naming, as revisions ask it."""

    def __init__(self, naming: Naming) -> None:
        naming.check()
        self._naming = naming

    @property
    def owner(self) -> str:
        """The schema of the tables, empty for the connection's own."""
        return self._naming.schema.owner

    def table(self, table: str, /) -> str:
        """Return the physical name of a table."""
        return self._naming.table(table)

    def column(self, table: str, column: str, /) -> str:
        """Return the physical name of a column."""
        return self._naming.column(table, column)

    def has(self, table: str, column: str, /) -> bool:
        """Return whether a column is wanted."""
        return self._naming.has(table, column)

    def extra(self, table: str, /) -> Mapping[str, Mapping[str, str]]:
        """Return the columns that hooks fill."""
        return self._naming.of(table).extra_columns


class Migrations:
    """The tables of one store, to be looked at and changed. Whatever goes wrong there is a StoreError.

    StoreUrlError for a store without tables, NamingError for names that cannot be: both are ValueErrors.
    """

    def __init__(self, url: StoreUrl, options: StoreOptions) -> None:
        if url.kind not in _WITH_TABLES:
            raise StoreUrlError(f"{url.scheme}: has no tables that could be migrated")
        self._url = url
        self._options = replace(options, statement_timeout_s=_STEP_S, pool_size=2)
        self._names = Called(Naming(options.schema))

    async def current(self) -> str:
        """Return the revision of the tables; empty if there are none."""
        return "" if self._is_missing() else await self._run(running.current)

    async def upgrade(self, to: str = HEAD, *, dry_run: bool = False) -> Migrated:
        """Bring the tables up to a revision; newer ones stay as they are. Others who do the same are waited for."""
        if dry_run and self._is_missing():
            return running.planned(to=to)
        return await self._run(partial(running.upgrade, to=to, dry_run=dry_run))

    async def downgrade(self, to: str, *, dry_run: bool = False) -> Migrated:
        """Bring the tables back to an older revision. What only newer ones keep is lost."""
        return await self._run(partial(running.downgrade, to=to, dry_run=dry_run))

    async def stamp(self, to: str = HEAD) -> Migrated:
        """Write down that the tables are of a revision, without looking at them."""
        return await self._run(partial(running.stamp, to=to))

    def statements(self, *, found: str = "", to: str = HEAD) -> str:
        """Return the SQL from one revision to another; nothing is connected to."""
        try:
            return running.statements(self._url.kind, self._names, found=found, to=to)
        except MigrationError as error:
            raise _refused(error) from None

    def _is_missing(self) -> bool:
        return self._url.kind == "sqlite" and not Path(sqlite_path(self._url)).exists()

    async def _run(self, job: Callable[[Connection, Called], T]) -> T:
        try:
            if self._url.kind == "sqlite":
                return await asyncio.to_thread(self._in_file, job)
            return await self._on_server(job)
        except MigrationError as error:
            raise _refused(error) from None
        # The door: drivers have many ways to fail, and a store has one.
        except Exception as error:
            if code_of(error) in _WAITED:
                raise _unavailable("somebody else is migrating for more than a minute") from None
            if not is_ours(error):
                raise
            raise translated(error, self._url.kind) from None

    def _in_file(self, job: Callable[[Connection, Called], T]) -> T:
        path = sqlite_path(self._url)
        try:
            make_private(path)
        except OSError as error:
            message = f"the file of the history cannot be made ({type(error).__name__})"
            raise _unavailable(message) from None
        engine = _file_engine(path)
        try:
            with engine.connect() as connection:
                return job(connection, self._names)
        finally:
            engine.dispose()

    async def _on_server(self, job: Callable[[Connection, Called], T]) -> T:
        make = postgresql_engine if self._url.kind == "postgresql" else oracle_engine
        engine = make(self._url, self._options)
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(job, self._names)
        finally:
            await engine.dispose()


def _file_engine(path: str) -> Engine:
    """One connection whose transactions keep all others from writing from their beginning on."""
    engine = create_engine(
        URL.create("sqlite", database=path),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"isolation_level": None, "timeout": running.WAIT_S},
    )

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN EXCLUSIVE")

    event.listen(engine, "begin", begin)
    return engine


def _refused(error: MigrationError) -> StoreError:
    return OldTablesError(str(error))


def _unavailable(message: str) -> StoreError:
    return StoreError(StoreErrorKind.UNAVAILABLE, message)
