import sqlite3

import pytest
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.sql.errors import is_ours, is_race, translated

SECRET = "hunter2 in SELECT secrets"


class PostgresError(Exception):
    def __init__(self, sqlstate: str) -> None:
        super().__init__(SECRET)
        self.sqlstate = sqlstate


class Said:
    def __init__(self, full_code: str) -> None:
        self.full_code = full_code


class OracleError(Exception):
    pass


def postgres(sqlstate: str, kind: type[DBAPIError] = DBAPIError) -> DBAPIError:
    return kind(SECRET, {"password": SECRET}, PostgresError(sqlstate))


def sqlite(name: str, kind: type[DBAPIError] = OperationalError) -> DBAPIError:
    error = sqlite3.OperationalError(SECRET)
    error.sqlite_errorname = name
    return kind(SECRET, None, error)


def oracle(code: str, kind: type[DBAPIError] = DBAPIError) -> DBAPIError:
    return kind(SECRET, None, OracleError(Said(code)))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (postgres("22001"), StoreErrorKind.TOO_LARGE),
        (postgres("54001"), StoreErrorKind.TOO_LARGE),
        (sqlite("SQLITE_TOOBIG"), StoreErrorKind.TOO_LARGE),
        (oracle("ORA-12899"), StoreErrorKind.TOO_LARGE),
        (postgres("22P02"), StoreErrorKind.CORRUPT),
        (sqlite("SQLITE_CORRUPT_VTAB"), StoreErrorKind.CORRUPT),
        (sqlite("SQLITE_NOTADB"), StoreErrorKind.CORRUPT),
        (oracle("ORA-32044"), StoreErrorKind.CORRUPT),
        (postgres("25006"), StoreErrorKind.UNAVAILABLE),
        (postgres("53100"), StoreErrorKind.UNAVAILABLE),
        (postgres("57P01"), StoreErrorKind.UNAVAILABLE),
        (sqlite("SQLITE_BUSY"), StoreErrorKind.UNAVAILABLE),
        (sqlite("SQLITE_READONLY_DBMOVED"), StoreErrorKind.UNAVAILABLE),
        (sqlite("SQLITE_IOERR_WRITE"), StoreErrorKind.UNAVAILABLE),
        (oracle("ORA-00942"), StoreErrorKind.UNAVAILABLE),
        (TimeoutError(SECRET), StoreErrorKind.UNAVAILABLE),
        (PoolTimeoutError(SECRET), StoreErrorKind.UNAVAILABLE),
        (ConnectionRefusedError(111, SECRET), StoreErrorKind.UNAVAILABLE),
        (PostgresError("28P01"), StoreErrorKind.UNAVAILABLE),
    ],
)
def test_what_went_wrong_is_told_without_what_the_driver_says(
    error: Exception, kind: StoreErrorKind
) -> None:
    told = translated(error, "the database")
    assert told.kind is kind
    assert "hunter2" not in told.message
    assert "SELECT" not in told.message
    assert told.message.isprintable()
    assert "the database" in told.message


def test_what_a_column_refuses_comes_out_as_it_was_said() -> None:
    said = StoreError(StoreErrorKind.TOO_LARGE, "too large")
    assert translated(StatementError("x", "y", None, said), "db") is said
    assert translated(said, "db") is said


@pytest.mark.parametrize(
    "error",
    [
        postgres("23505", IntegrityError),
        sqlite("SQLITE_CONSTRAINT_PRIMARYKEY", IntegrityError),
        sqlite("SQLITE_CONSTRAINT_UNIQUE", IntegrityError),
        oracle("ORA-00001", IntegrityError),
        postgres("40001"),
        postgres("40P01"),
        oracle("ORA-00060"),
    ],
)
def test_what_may_work_the_second_time_is_known(error: DBAPIError) -> None:
    assert is_race(error)


@pytest.mark.parametrize(
    "error",
    [
        postgres("23502", IntegrityError),
        sqlite("SQLITE_CONSTRAINT_NOTNULL", IntegrityError),
        oracle("ORA-02290", IntegrityError),
        sqlite("SQLITE_BUSY"),
        postgres("57014"),
        TimeoutError(),
    ],
)
def test_what_will_not_is_not_tried_again(error: Exception) -> None:
    assert not is_race(error)


def test_mistakes_of_this_code_are_not_hidden() -> None:
    assert not is_ours(TypeError("x"))
    assert not is_ours(AssertionError())
    assert not is_ours(KeyError("x"))
    assert is_ours(sqlite3.OperationalError("x"))
    assert is_ours(postgres("40001"))
