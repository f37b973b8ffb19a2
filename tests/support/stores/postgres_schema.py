"""A database of PostgreSQL as tests of migrations see it: fresh, migrated, and the shape that its tables have."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import asyncpg
from sqlalchemy import Connection

from smg_storage.migrate import Migrations
from smg_storage.options import SchemaNames, StoreOptions
from smg_storage.sql.database_urls import postgresql_engine
from smg_storage.url import parse_store_url
from support.stores.postgres_server import Postgres

T = TypeVar("T")


@asynccontextmanager
async def database(postgres: Postgres) -> AsyncIterator[tuple[str, "asyncpg.Connection[Any]"]]:
    """Make an empty database, and connect to it."""
    async with postgres.database() as url:
        connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
        try:
            yield url, connection
        finally:
            await connection.close()


def migrations(url: str, schema: SchemaNames | None = None) -> Migrations:
    """Return the migrations of a database."""
    return Migrations(parse_store_url(url), StoreOptions(schema=schema or SchemaNames()))


async def with_engine(url: str, job: Callable[[Connection], T]) -> T:
    """Do something within a transaction of its own."""
    engine = postgresql_engine(parse_store_url(url), StoreOptions())
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(job)
    finally:
        await engine.dispose()


_SHAPE: Final = (
    "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default"
    " FROM information_schema.columns WHERE table_schema = ANY($1) ORDER BY 1, ordinal_position",
    "SELECT indexname, regexp_replace(indexdef, ' ON [^ ]+ ', ' ON ') FROM pg_indexes"
    " WHERE schemaname = ANY($1) AND tablename <> 'smg_schema_version' ORDER BY 1",
    "SELECT conname, pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_namespace n"
    " ON n.oid = connamespace WHERE nspname = ANY($1) AND contype <> 'n'"
    " AND conname NOT LIKE 'smg_schema_version%' ORDER BY 1",
)


async def shape(connection: "asyncpg.Connection[Any]", *owners: str) -> list[list[tuple[Any, ...]]]:
    """Return columns, indexes and constraints, all but those of the table of the version."""
    return [[tuple(row) for row in await connection.fetch(query, list(owners))] for query in _SHAPE]
