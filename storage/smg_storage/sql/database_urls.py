"""Database URLs: from a URL to connections, set up the way each database wants it.

SQLite: a write-ahead log, so that readers and the one writer do not wait for each other; every writing transaction
takes the right to write when it begins, because one that has read first cannot get it any more. PostgreSQL: through a
pooler that gives connections out per transaction (`?pgbouncer=true`), nothing may be prepared or set on a connection.
Oracle: sessions in UTC, because the driver forgets zones.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import QueuePool

from smg_storage.options import StoreOptions
from smg_storage.url import StoreUrl

_PAGE_BYTES: Final = 4096
_STATEMENTS_MAX: Final = 256
"""Prepared statements that a connection keeps: there are fewer than that, lists of every length included."""
_YES: Final = frozenset({"1", "true", "yes", "on"})
_LOCAL: Final = frozenset({"pgbouncer"})
"""What a URL says to us, and not to the driver."""
_OF_LIBPQ: Final = frozenset({"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl"})
"""What PostgreSQL's own library calls things of TLS: the driver knows them in a URL, and not as arguments. It reads the
files for each new connection."""


def sqlite_engine(path: str, options: StoreOptions, *, writes: bool) -> Engine:
    """Return an engine over a file: with the one connection that writes, or those that only read."""
    engine = create_engine(
        URL.create("sqlite", database=path),
        poolclass=QueuePool,
        pool_size=1 if writes else options.sqlite_readers,
        max_overflow=0,
        pool_timeout=options.acquire_timeout_s,
        hide_parameters=True,
        connect_args={
            "check_same_thread": False,
            "isolation_level": None,
            "timeout": options.sqlite_busy_timeout_ms / 1000,
            "cached_statements": _STATEMENTS_MAX,
        },
    )
    begin = "BEGIN IMMEDIATE" if writes else "BEGIN"

    def set_up(connection: Any, _record: Any) -> None:
        for pragma in _pragmas(options, writes=writes):
            connection.execute(f"PRAGMA {pragma}").close()

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", start)
    return engine


def _pragmas(options: StoreOptions, *, writes: bool) -> tuple[str, ...]:
    # Only who writes changes the kind of journal: it needs the file for itself.
    journal = ("journal_mode=WAL",) if writes else ("query_only=ON",)
    return (
        f"busy_timeout={options.sqlite_busy_timeout_ms}",
        *journal,
        "synchronous=NORMAL",
        f"mmap_size={options.sqlite_mmap_bytes}",
        f"wal_autocheckpoint={max(1, options.sqlite_checkpoint_bytes // _PAGE_BYTES)}",
        f"journal_size_limit={options.sqlite_checkpoint_bytes}",
        "temp_store=MEMORY",
    )


def journal_mover(path: str) -> Callable[[], None]:
    """Return what moves the journal of a file into it, as far as no operation has to wait for that.

    What cannot be moved now is later; the connection that writes does it if all else fails.
    """

    # Never a file that was taken away meanwhile: that would make an empty one.
    name = f"file:{quote(path)}?mode=rw"

    def move() -> None:
        with suppress(sqlite3.Error), closing(sqlite3.connect(name, uri=True)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").close()

    return move


def make_private(path: str) -> None:
    """Make an empty file that only its owner can read, if there is none: SQLite's other files get its mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return


def sqlite_path(url: StoreUrl) -> str:
    """Return the file that a URL names."""
    return str(Path(url.path).expanduser())


def postgresql_engine(url: StoreUrl, options: StoreOptions) -> AsyncEngine:
    """Return a pool of connections to PostgreSQL."""
    pooled = url.query.get("pgbouncer", "").lower() in _YES
    arguments: dict[str, Any] = {
        "timeout": options.connect_timeout_s,
        "command_timeout": options.statement_timeout_s,
        "server_settings": _server_settings(options, pooled=pooled),
    }
    if pooled:
        arguments |= {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
        arguments["prepared_statement_name_func"] = _no_name
    else:
        arguments["prepared_statement_cache_size"] = _STATEMENTS_MAX
    secured = {name: value for name, value in url.query.items() if name in _OF_LIBPQ}
    if secured:
        arguments["dsn"] = f"postgresql://?{urlencode(secured)}"
    return _pool(
        _driver_url(url, "postgresql+asyncpg"),
        options,
        arguments,
        # Documents are not to be parsed, and written again.
        json_deserializer=_as_it_is,
    )


def _as_it_is(text: str) -> str:
    return text


def _no_name() -> str:
    """Prepare without a name: what has one would be looked for on another connection."""
    return ""


def _server_settings(options: StoreOptions, *, pooled: bool) -> Mapping[str, str]:
    settings = {"application_name": options.application_name[:63]}
    if not pooled:
        # Plans for a handful of rows by key are never worth compiling.
        settings |= {
            "jit": "off",
            "statement_timeout": f"{int(options.statement_timeout_s * 1000)}",
        }
    return settings


def oracle_engine(url: StoreUrl, options: StoreOptions) -> AsyncEngine:
    """Return a pool of sessions of Oracle."""
    engine = _pool(
        _driver_url(url, "oracle+oracledb"),
        options,
        {"tcp_connect_timeout": options.connect_timeout_s},
    )

    def set_up(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("ALTER SESSION SET TIME_ZONE = '+00:00'")
        cursor.close()

    event.listen(engine.sync_engine, "connect", set_up)
    return engine


def _pool(
    url: URL, options: StoreOptions, arguments: Mapping[str, Any], **more: Any
) -> AsyncEngine:
    return create_async_engine(
        url,
        pool_size=options.pool_size,
        max_overflow=0,
        pool_timeout=options.acquire_timeout_s,
        pool_recycle=options.recycle_s,
        # What a lost connection breaks is done again on another one (see `transact`), which is as good as asking each
        # time whether it is still there, and saves the asking.
        pool_pre_ping=False,
        hide_parameters=True,
        connect_args=dict(arguments),
        **more,
    )


def _driver_url(url: StoreUrl, driver: str) -> URL:
    ours = _LOCAL | _OF_LIBPQ if driver.startswith("postgresql") else _LOCAL
    asked = {name: value for name, value in url.query.items() if name not in ours}
    host, port = url.hosts[0] if url.hosts else ("", 0)
    if driver.startswith("oracle"):
        asked = {"service_name": url.path, **asked}
    elif len(url.hosts) > 1:
        asked["host"] = ",".join(name for name, _ in url.hosts)
        asked["port"] = ",".join(str(number or 5432) for _, number in url.hosts)
        host, port = "", 0
    return URL.create(
        driver,
        username=url.user or None,
        password=url.password or None,
        host=host or None,
        port=port or None,
        database=None if driver.startswith("oracle") else url.path,
        query=asked,
    )
