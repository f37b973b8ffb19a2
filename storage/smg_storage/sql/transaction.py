"""Transaction of one operation: run until it is kept, or until it is clear that it will not be.

An operation that ran into another's write is undone and begins again, carefully; one whose
connection was gone before anything could have been kept begins again on another. What fails while
it is being committed is not repeated here: whether it is kept is unknown, and the caller decides.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.sql.errors import is_lost, is_race
from smg_storage.sql.statements.all_statements import Statements
from smg_storage.sql.unit_of_work import Work

T = TypeVar("T")
Operation = Callable[[Work], T]

RACES_MAX: Final = 6


class Asked:
    """Request of a transaction: its tenant, and its time."""

    __slots__ = ("now_us", "say", "tenant")

    def __init__(self, say: Statements, tenant: str, now_us: int) -> None:
        self.say = say
        self.tenant = tenant
        self.now_us = now_us

    def work(self, connection: Connection, *, careful: bool) -> Work:
        """Return what the operation works with."""
        return Work(connection, self.say, self.tenant, self.now_us, careful=careful)


def transact(connection: Connection, asked: Asked, operation: Operation[T]) -> T:
    """Run an operation in a transaction of its own, and keep what it did."""
    lost = False
    careful = False
    for _ in range(RACES_MAX):
        transaction = connection.begin()
        try:
            answer = operation(asked.work(connection, careful=careful))
        except SQLAlchemyError as error:
            transaction.rollback()
            if is_lost(error) and not lost:
                lost = True
            elif is_race(error):
                careful = True
            else:
                raise
            continue
        except BaseException:
            transaction.rollback()
            raise
        try:
            transaction.commit()
        except SQLAlchemyError as error:
            if not is_race(error):
                raise
            careful = True
            continue
        return answer
    raise StoreError(StoreErrorKind.CONFLICT, "others write the same all the time")


def consult(connection: Connection, asked: Asked, operation: Operation[T]) -> T:
    """Run an operation that only reads; twice if the connection turns out to be gone."""
    try:
        return operation(asked.work(connection, careful=False))
    except SQLAlchemyError as error:
        if not is_lost(error):
            raise
        connection.rollback()
        return operation(asked.work(connection, careful=False))
