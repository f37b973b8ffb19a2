"""Opening of a store in tables by its URL."""

import asyncio
from collections.abc import Callable
from importlib import import_module

from smg_storage.options import StoreOptions
from smg_storage.sql.database_urls import (
    journal_mover,
    oracle_engine,
    postgresql_engine,
    sqlite_engine,
    sqlite_path,
)
from smg_storage.sql.databases import Connections, Database, Threads
from smg_storage.sql.schema.naming import Naming
from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.store import Migrate, SqlStore
from smg_storage.url import StoreUrl


def open_store(
    url: StoreUrl,
    options: StoreOptions,
    now_us: Callable[[], int],
    *,
    migrate: Migrate | None = None,
) -> SqlStore:
    """Return a store that has not been started. NamingError if its tables cannot be called what they are to be called.

    `migrate` brings old tables up to date at the start, where that is wanted; ours by default.
    """

    async def bring_up_to_date() -> None:
        # Alembic takes most of a second to load, and hardly any start needs it.
        migrations = await asyncio.to_thread(import_module, "smg_storage.migrate")
        await migrations.Migrations(url, options).upgrade()

    tables = Tables(Naming(options.schema))
    return SqlStore(
        url.kind,
        lambda: _database(url, options),
        tables,
        options=options,
        now_us=now_us,
        migrate=migrate or bring_up_to_date,
        path=sqlite_path(url) if url.kind == "sqlite" else "",
    )


def _database(url: StoreUrl, options: StoreOptions) -> Database:
    if url.kind == "postgresql":
        return Connections(postgresql_engine(url, options), size=options.pool_size)
    if url.kind == "oracle":
        return Connections(oracle_engine(url, options), size=options.pool_size)
    path = sqlite_path(url)
    return Threads(
        sqlite_engine(path, options, writes=True),
        sqlite_engine(path, options, writes=False),
        readers_max=options.sqlite_readers,
        move=journal_mover(path),
    )
