"""Errors of database drivers, as the one way in which a store fails.

Messages of drivers have SQL, values and addresses in them, so none is passed on: what is told is which database, which
code of it, and what that means.
"""

from typing import Final

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from smg_storage.errors import StoreError, StoreErrorKind

_DUPLICATE: Final = frozenset(
    {"23505", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE", "ORA-00001"}
)
_RACE: Final = frozenset({"40001", "40P01", "42P07", "ORA-00060", "ORA-08177"})
"""Two wait for each other, saw different things, or made the same table: one of them begins again."""
_KINDS: Final = {
    "22001": (StoreErrorKind.TOO_LARGE, "a name is too long"),
    "54000": (StoreErrorKind.TOO_LARGE, "a value is beyond what it can keep"),
    "54001": (StoreErrorKind.TOO_LARGE, "a document is nested too deep"),
    "SQLITE_TOOBIG": (StoreErrorKind.TOO_LARGE, "a value is beyond what it can keep"),
    "ORA-12899": (StoreErrorKind.TOO_LARGE, "a name is too long"),
    "22P02": (StoreErrorKind.CORRUPT, "a document is no JSON"),
    "22021": (StoreErrorKind.CORRUPT, "a text is no UTF-8"),
    "ORA-02290": (StoreErrorKind.CORRUPT, "a document is no JSON"),
    "ORA-32044": (StoreErrorKind.CORRUPT, "a chain goes round in a circle"),
    "SQLITE_CORRUPT": (StoreErrorKind.CORRUPT, "the file is damaged"),
    "SQLITE_NOTADB": (StoreErrorKind.CORRUPT, "the file is no database"),
    "25006": (StoreErrorKind.UNAVAILABLE, "it takes no writes"),
    "SQLITE_READONLY": (StoreErrorKind.UNAVAILABLE, "the file takes no writes"),
    "SQLITE_CANTOPEN": (StoreErrorKind.UNAVAILABLE, "the file cannot be opened"),
    "53100": (StoreErrorKind.UNAVAILABLE, "its disk is full"),
    "SQLITE_FULL": (StoreErrorKind.UNAVAILABLE, "the disk is full"),
    "SQLITE_BUSY": (StoreErrorKind.UNAVAILABLE, "somebody else is writing for too long"),
    "53300": (StoreErrorKind.UNAVAILABLE, "it takes no more connections"),
    "28P01": (StoreErrorKind.UNAVAILABLE, "it does not accept the password"),
    "28000": (StoreErrorKind.UNAVAILABLE, "it does not accept the user"),
    "3D000": (StoreErrorKind.UNAVAILABLE, "there is no database of that name"),
    "57014": (StoreErrorKind.UNAVAILABLE, "it took too long"),
    "42P01": (StoreErrorKind.UNAVAILABLE, "tables are missing: run `smg-admin db migrate`"),
    "42703": (StoreErrorKind.UNAVAILABLE, "columns are missing: run `smg-admin db migrate`"),
    "ORA-00942": (StoreErrorKind.UNAVAILABLE, "tables are missing: run `smg-admin db migrate`"),
}


def is_race(error: BaseException) -> bool:
    """Return whether the same may work if it is done again, more carefully."""
    code = code_of(error)
    return code in _RACE or (isinstance(error, IntegrityError) and code in _DUPLICATE)


def is_lost(error: BaseException) -> bool:
    """Return whether the connection is gone."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def is_ours(error: Exception) -> bool:
    """Return whether this is about a database, and not a mistake of this code."""
    package = type(error).__module__.partition(".")[0]
    known = isinstance(error, SQLAlchemyError | OSError | TimeoutError | StoreError)
    return known or package in ("asyncpg", "oracledb", "sqlite3")


def translated(error: Exception, database: str) -> StoreError:
    """Return what went wrong with a database."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, StatementError) and isinstance(error.orig, StoreError):
        return error.orig
    if isinstance(error, TimeoutError):
        return _unavailable(f"{database} has not answered in time")
    if isinstance(error, PoolTimeoutError):
        return _unavailable(f"all connections to {database} are in use")
    code = code_of(error)
    if code in _KINDS:
        kind, meaning = _KINDS[code]
        return StoreError(kind, f"{database}: {meaning} ({code})")
    if isinstance(error, OSError):
        return _unavailable(f"{database} cannot be reached ({type(error).__name__})")
    if is_lost(error):
        return _unavailable(f"the connection to {database} is lost")
    return _unavailable(f"{database} failed ({code or type(error).__name__})")


def code_of(error: BaseException | None) -> str:
    """Return the database's own code of an error: SQLSTATE, the name of SQLite's, ORA-…; empty if it has none."""
    seen = 0
    while error is not None and seen < 8:
        for name in ("sqlstate", "sqlite_errorname", "full_code"):
            code = getattr(error, name, None)
            if isinstance(code, str) and code:
                return _plain(code)
        inner = error.args[0] if error.args else None
        if isinstance(code := getattr(inner, "full_code", None), str):
            return code
        error = getattr(error, "orig", None) or error.__cause__
        seen += 1
    return ""


def _plain(code: str) -> str:
    """SQLite's extended codes, of which only those of constraints matter here, as their family."""
    if not code.startswith("SQLITE_") or code.startswith("SQLITE_CONSTRAINT"):
        return code
    return "_".join(code.split("_")[:2])


def _unavailable(message: str) -> StoreError:
    return StoreError(StoreErrorKind.UNAVAILABLE, message)
