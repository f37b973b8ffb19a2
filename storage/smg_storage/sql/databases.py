"""Databases: run operations in threads over SQLite, or on the event
loop over a pool of connections.

SQLite is a library, and blocks: one thread writes, a few read, each operation from beginning to end in one go. (A
driver that hands every single call to a thread and back would cost four hand-overs per statement.) What was written
moves from the journal into the file in a thread of its own, a little at a time, so that no commit has to wait until
64 MiB were moved. Servers are waited
for by their driver; operations run in a greenlet that is suspended meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

from smg_storage.connection_queue import Line, Place, together
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import PoolFigures
from smg_storage.sql.errors import is_ours, translated
from smg_storage.sql.transaction import Asked, Operation, consult, transact

T = TypeVar("T")

WAITING_MAX: Final = 4_096
"""Operations that wait for a thread; whoever comes later is told that the store is too slow."""


MOVE_EVERY_S: Final = 0.5
"""How often what was written is moved into the file, while there are writes; a second's worth takes 20 to 50 ms."""


class Database(Protocol):
    """Database that runs operations. Whatever goes wrong there comes out as a StoreError."""

    async def read(self, asked: Asked, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation that only reads."""
        ...

    async def write(self, asked: Asked, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation as one transaction."""
        ...

    def pool(self) -> PoolFigures:
        """Return how busy the connections are."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


class Threads:
    """SQLite, in threads of its own."""

    def __init__(
        self,
        writer: Engine,
        readers: Engine,
        *,
        readers_max: int,
        move: Callable[[], None] | None = None,
    ) -> None:
        """Use these; `move` brings what was written from the journal into
        the file, beside other writes.
        """
        self._writer = writer
        self._readers = readers
        self._move = move
        self._moving = ThreadPoolExecutor(1, thread_name_prefix="history-journal")
        self._moved_s = -MOVE_EVERY_S
        self._last_move: Future[None] | None = None
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="history-writer")
        self._reading = ThreadPoolExecutor(readers_max, thread_name_prefix="history-reader")
        self._to_write: Final = Line(1)
        self._to_read: Final = Line(readers_max)
        self._waiting = 0

    async def read(self, asked: Asked, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation that only reads."""

        def run() -> T:
            with self._readers.connect() as connection:
                return consult(connection, asked, operation)

        return await self._in(self._reading, self._to_read, run, timeout_s)

    async def write(self, asked: Asked, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation as one transaction, after those that came before."""

        def run() -> T:
            with self._writer.connect() as connection:
                return transact(connection, asked, operation)

        written = await self._in(self._writing, self._to_write, run, timeout_s)
        self._keep_moving(asyncio.get_running_loop().time())
        return written

    def _keep_moving(self, now_s: float) -> None:
        """Have the journal moved if it is time for that, and the last move is over: a slow disk collects none."""
        under_way = self._last_move is not None and not self._last_move.done()
        if self._move is None or under_way or now_s - self._moved_s < MOVE_EVERY_S:
            return
        self._moved_s = now_s
        self._last_move = self._moving.submit(self._move)

    async def _in(
        self, threads: ThreadPoolExecutor, line: Line, run: Callable[[], T], timeout_s: float
    ) -> T:
        if self._waiting >= WAITING_MAX:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "too many are waiting for sqlite")
        self._waiting += 1
        try:
            with line.place() as place:
                async with asyncio.timeout(timeout_s):
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(threads, _served, place, run)
        # The door: drivers have many ways to fail, and a store has one.
        except Exception as error:
            if not is_ours(error):
                raise
            raise translated(error, "sqlite") from None
        finally:
            self._waiting -= 1

    def pool(self) -> PoolFigures:
        """Return how busy the threads are, the one that writes and those that read: each has its connection."""
        return together(self._to_write.figures(), self._to_read.figures())

    async def close(self) -> None:
        """Finish what was begun, then close the file."""
        # Whoever has just written may go on only after the threads are gone.
        self._move = None
        for threads in (self._reading, self._writing, self._moving):
            await asyncio.to_thread(threads.shutdown, wait=True)
        self._readers.dispose()
        self._writer.dispose()


def _served(place: Place, run: Callable[[], T]) -> T:
    place.served()
    return run()


class Connections:
    """A server, over a pool of connections."""

    def __init__(self, engine: AsyncEngine, *, size: int) -> None:
        self._engine = engine
        self._line: Final = Line(size)
        # A read is one statement: without a transaction around it, it is one round trip as well.
        self._reading = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._name = engine.dialect.name

    async def read(self, asked: Asked, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation that only reads."""

        async def run() -> T:
            with self._line.place() as place:
                async with self._reading.connect() as connection:
                    place.served()
                    return await connection.run_sync(consult, asked, operation)

        return await self._within(run, timeout_s)

    async def write(self, asked: Asked, operation: Operation[T], *, timeout_s: float) -> T:
        """Run an operation as one transaction."""

        async def run() -> T:
            with self._line.place() as place:
                async with self._engine.connect() as connection:
                    place.served()
                    return await connection.run_sync(transact, asked, operation)

        return await self._within(run, timeout_s)

    async def _within(self, run: Callable[[], Awaitable[T]], timeout_s: float) -> T:
        try:
            async with asyncio.timeout(timeout_s):
                return await run()
        # The door: drivers have many ways to fail, and a store has one.
        except Exception as error:
            if not is_ours(error):
                raise
            raise translated(error, self._name) from None

    def pool(self) -> PoolFigures:
        """Return how busy the connections are."""
        return self._line.figures()

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()
