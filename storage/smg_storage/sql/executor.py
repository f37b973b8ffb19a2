"""Executor: runs a store's operations on its database, for one tenant and within a time."""

from collections.abc import Callable
from typing import TypeVar

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import NO_TENANT, Access, PoolFigures
from smg_storage.sql.databases import Database
from smg_storage.sql.statements.all_statements import Statements
from smg_storage.sql.transaction import Asked, Operation

T = TypeVar("T")


class Executor:
    """Executor of operations. It has a database from the start of the store to its end."""

    def __init__(
        self, open_database: Callable[[], Database], say: Statements, now_us: Callable[[], int]
    ) -> None:
        self._open = open_database
        self._database: Database | None = None
        self._say = say
        self._now_us = now_us

    async def open(self) -> None:
        """Connect when something is first asked."""
        if self._database is None:
            self._database = self._open()

    async def close(self) -> None:
        """Let go of the database."""
        database, self._database = self._database, None
        if database is not None:
            await database.close()

    async def read(self, access: Access, operation: Operation[T]) -> T:
        """Run an operation that only reads."""
        return await self._there().read(
            self._asked(access.tenant), operation, timeout_s=access.timeout_s
        )

    async def write(self, access: Access, operation: Operation[T]) -> T:
        """Run an operation as one transaction."""
        return await self._there().write(
            self._asked(access.tenant), operation, timeout_s=access.timeout_s
        )

    async def write_for_all(self, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation that is about more than one tenant."""
        return await self._there().write(self._asked(NO_TENANT), operation, timeout_s=timeout_s)

    async def read_for_all(self, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation that reads what belongs to more than one tenant."""
        return await self._there().read(self._asked(NO_TENANT), operation, timeout_s=timeout_s)

    def pool(self) -> PoolFigures | None:
        """Return how busy the connections are; None before there are any."""
        return self._database.pool() if self._database is not None else None

    def _asked(self, tenant: str) -> Asked:
        return Asked(self._say, tenant, self._now_us())

    def _there(self) -> Database:
        if self._database is None:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "the store is not open")
        return self._database
