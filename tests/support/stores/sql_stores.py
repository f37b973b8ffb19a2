"""Stores in tables for the contract: a fresh file or database each, with two stores over it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from smg_storage.options import StoreOptions
from smg_storage.sql.open import open_store
from smg_storage.sql.schema.naming import LOGICAL
from smg_storage.url import parse_store_url
from support.store_contract.maker import Clock, KeptMaker, Opened
from support.stores.postgres_server import Postgres

_EMPTY: Final = "; ".join(f'DELETE FROM "{table}"' for table in LOGICAL)


@asynccontextmanager
async def opened(url: str, options: StoreOptions) -> AsyncIterator[Opened]:
    """Open two stores over the same database."""
    clock = Clock()
    store = open_store(parse_store_url(url), options, clock)
    other = open_store(parse_store_url(url), options, clock)
    try:
        await store.start()
        await other.start()
        yield Opened(store, other, clock)
    finally:
        await other.close()
        await store.close()


class SqliteMaker:
    """SQLite, a new file each time."""

    def __init__(self, folder: Path, options: StoreOptions | None = None) -> None:
        self._folder = folder
        self._options = options or StoreOptions(auto_migrate=True)
        self._made = 0

    @property
    def expires_by_itself(self) -> bool:
        """It does not."""
        return False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        """Open two stores over a new file."""
        self._made += 1
        path = self._folder / f"history-{self._made}.db"
        async with opened(f"sqlite:///{path}", self._options) as stores:
            yield stores


@asynccontextmanager
async def kept_sqlite(folder: Path) -> AsyncIterator[KeptMaker]:
    """Open stores over one new file for many cases."""
    path = folder / "history.db"
    async with opened(f"sqlite:///{path}", StoreOptions(auto_migrate=True)) as stores:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:

            async def empty() -> None:
                connection.executescript(f"BEGIN; {_EMPTY}; COMMIT")

            yield KeptMaker(stores, empty, expires_by_itself=False)


async def make_tables(url: str) -> None:
    """Put the tables of today into an empty database, and disconnect."""
    store = open_store(parse_store_url(url), StoreOptions(auto_migrate=True), Clock())
    await store.start()
    await store.close()


@contextmanager
def database_of_tables(server: Postgres) -> Iterator[str]:
    """Make a database with tables, for several tests one after the other, and return its URL."""
    database = server.database(make_tables, name="history")
    with asyncio.Runner() as runner:
        url = runner.run(database.__aenter__())
        try:
            yield url
        finally:
            runner.run(database.__aexit__(None, None, None))


class PostgresqlMaker:
    """PostgreSQL: a database that is emptied each time, which takes far less than a new one."""

    def __init__(self, url: str, options: StoreOptions | None = None) -> None:
        self._url = url
        self._options = options or StoreOptions()

    @property
    def expires_by_itself(self) -> bool:
        """It does not."""
        return False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        """Open two stores over an empty database."""
        await tell(self._url, *(f'DELETE FROM "{table}"' for table in LOGICAL))
        async with opened(self._url, self._options) as stores:
            yield stores


@asynccontextmanager
async def kept_postgresql(url: str) -> AsyncIterator[KeptMaker]:
    """Open stores over one database with tables for many cases."""
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    try:

        async def empty() -> None:
            await connection.execute(_EMPTY)

        async with opened(url, StoreOptions()) as stores:
            yield KeptMaker(stores, empty, expires_by_itself=False)
    finally:
        await connection.close()


async def tell(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Say something to a database past the stores, and return what the last of it answers."""
    engine = create_async_engine(
        url.replace("postgresql:", "postgresql+asyncpg:", 1), isolation_level="AUTOCOMMIT"
    )
    try:
        async with engine.connect() as connection:
            answers = [await connection.execute(text(statement)) for statement in statements]
            last = answers[-1]
            return [tuple(row) for row in last] if last.returns_rows else []
    finally:
        await engine.dispose()
