"""How a store is given to the contract: two connections to the same fresh data, and a clock that tests turn."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from smg_storage.store import HistoryStore


class Clock:
    """Microseconds since 1970. It begins at the time it really is and then stands still.

    A store whose server looks at a clock of its own must not find everything over: tests write times that are at
    least a minute away, and then turn this clock on.
    """

    def __init__(self) -> None:
        self.now_us = 0
        self.reset()

    def __call__(self) -> int:
        return self.now_us

    def reset(self) -> None:
        """Begin again, at the time it really is."""
        self.now_us = int(datetime.now(UTC).timestamp() * 1_000_000)

    def advance_s(self, seconds: int) -> None:
        """Turn it on."""
        self.now_us += seconds * 1_000_000


@dataclass(frozen=True, slots=True)
class Opened:
    """A store that has been started, another one on the same data, and the clock of both.

    Where two cannot see the same data, as in memory, they are one.
    """

    store: HistoryStore
    other: HistoryStore
    clock: Clock
    holder: str = ""
    """What all threads begin with, where it matters which node holds them."""


class StoreMaker(Protocol):
    """What a kind of store has to bring along to be tested."""

    @property
    def expires_by_itself(self) -> bool:
        """Whether the server takes away what is over, so that `purge` finds nothing to do."""
        ...

    def open(self) -> AbstractAsyncContextManager[Opened]:
        """Open stores over data of which there is none yet; close and forget them afterwards."""
        ...


class KeptMaker:
    """Stores that go on from case to case, over data that is emptied before each.

    To open two costs several times what most cases do: connections, tables and statements, functions of a server.
    What a case closes it starts again.
    """

    def __init__(
        self, opened: Opened, empty: Callable[[], Awaitable[None]], *, expires_by_itself: bool
    ) -> None:
        self._opened = opened
        self._empty = empty
        self._expires_by_itself = expires_by_itself

    @property
    def expires_by_itself(self) -> bool:
        """See `StoreMaker`."""
        return self._expires_by_itself

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        """Give the stores that are open, over data of which there is none any more."""
        await self._empty()
        self._opened.clock.reset()
        yield self._opened


Stores = AsyncIterator[Opened]
