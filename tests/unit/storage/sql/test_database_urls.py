import inspect
from collections.abc import Mapping
from typing import Any

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from smg_storage.options import StoreOptions
from smg_storage.sql.database_urls import oracle_engine, postgresql_engine, sqlite_path
from smg_storage.url import parse_store_url

OPTIONS = StoreOptions(pool_size=3, connect_timeout_s=7.0)


def asked(engine: AsyncEngine) -> Mapping[str, Any]:
    positional, named = engine.dialect.create_connect_args(engine.url)
    assert not positional
    return dict(named)


def test_postgresql_is_asked_for_what_the_url_says() -> None:
    url = parse_store_url("postgresql://me:p%40ss@db.example:6432/history?pgbouncer=true")
    assert asked(postgresql_engine(url, OPTIONS)) == {
        "host": "db.example",
        "port": 6432,
        "user": "me",
        "password": "p@ss",
        "database": "history",
    }


def test_what_a_url_says_of_tls_is_for_the_driver_to_read_as_postgresqls_own_programs_do() -> None:
    """It takes `sslmode` in a URL of its own only: as an argument it is refused with every connection."""
    url = parse_store_url(
        "postgresql://me@db.example/history?sslmode=verify-full&sslrootcert=/etc/a%20b.pem"
    )
    engine = postgresql_engine(url, OPTIONS)
    assert "sslmode" not in asked(engine)
    parameters = inspect.signature(asyncpg.connect).parameters
    assert asked(engine).keys() <= parameters.keys()


def test_several_postgresql_servers_may_be_named() -> None:
    url = parse_store_url("postgresql://me@one,two:6432/history")
    found = asked(postgresql_engine(url, OPTIONS))
    assert found["host"] == ["one", "two"]
    assert found["port"] == [5432, 6432]


def test_oracle_is_asked_for_a_service() -> None:
    url = parse_store_url("oracle://me:secret@db.example:1522/HISTORY?config_dir=/wallet")
    found = asked(oracle_engine(url, OPTIONS))
    assert found["user"] == "me"
    assert found["password"] == "secret"
    assert found["config_dir"] == "/wallet"
    assert "HISTORY" in found["dsn"]
    assert "1522" in found["dsn"]


@pytest.mark.parametrize("make", [postgresql_engine, oracle_engine])
def test_no_password_is_shown(make: Any) -> None:
    kind = make.__name__.removesuffix("_engine")
    engine = make(parse_store_url(f"{kind}://me:hunter2@db.example/history"), OPTIONS)
    assert "hunter2" not in repr(engine)
    assert "hunter2" not in str(engine.url)


def test_a_file_is_where_the_url_says() -> None:
    assert sqlite_path(parse_store_url("sqlite:////var/lib/history.db")) == "/var/lib/history.db"
    assert sqlite_path(parse_store_url("sqlite:///history.db")) == "history.db"
