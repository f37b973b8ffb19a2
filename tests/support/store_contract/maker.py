"""How a store is given to the contract: two connections to the same fresh data, and a clock that tests turn."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
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
        self.now_us = int(datetime.now(UTC).timestamp() * 1_000_000)

    def __call__(self) -> int:
        return self.now_us

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


class StoreMaker(Protocol):
    """What a kind of store has to bring along to be tested."""

    @property
    def expires_by_itself(self) -> bool:
        """Whether the server takes away what is over, so that `purge` finds nothing to do."""
        ...

    def open(self) -> AbstractAsyncContextManager[Opened]:
        """Open stores over data of which there is none yet; close and forget them afterwards."""
        ...


Stores = AsyncIterator[Opened]
