"""Response lanes: the order in which a Responses socket makes what it is asked for.

Each lane makes one response at a time, in the order they were asked for; lanes do not wait for each
other. All of it belongs to the task that reads the socket.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.responses.sockets.client_events import Create

LANES_MAX: Final = 32
RUNNING_MAX: Final = 16
"""So many lanes make a response at a time."""
WAITING_MAX: Final = 64
"""While so many responses wait for their turn, the socket is not read."""
WAITING_MAX_BYTES: Final = 16 * 1024 * 1024
"""Nor is it while what they were asked with is longer than this."""


class _Lane:
    __slots__ = ("task", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[Create] = deque()
        self.task: asyncio.Task[None] | None = None


class ResponseLanes:
    """All lanes of a socket; `make` makes one response in a task of `group`, and may raise ConnectionError only."""

    def __init__(self, group: asyncio.TaskGroup, make: Callable[[Create], Awaitable[None]]) -> None:
        self._group: Final = group
        self._make: Final = make
        self._lanes: Final[dict[str, _Lane]] = {}
        self._waiting = 0
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    def add(self, create: Create) -> None:
        """Make a response after those that its lane was asked for before; RATE_LIMITED where there are too many lanes."""
        lane = self._lanes.get(create.lane)
        if lane is None:
            if len(self._lanes) >= LANES_MAX:
                raise _too_many(f"a socket has at most {LANES_MAX} lanes")
            lane = _Lane()
        if lane.task is None and self._running >= RUNNING_MAX:
            raise _too_many(f"at most {RUNNING_MAX} lanes of a socket make responses at a time")
        self._lanes[create.lane] = lane
        lane.waiting.append(create)
        self._count(1, create)
        if lane.task is None:
            lane.task = self._group.create_task(self._run(lane))

    async def room(self) -> None:
        """Return when more may be asked for."""
        await self._room.wait()

    async def finished(self) -> None:
        """Return when everything that was asked for is made."""
        while tasks := [lane.task for lane in self._lanes.values() if lane.task is not None]:
            await asyncio.wait(tasks)

    def cancel(self) -> None:
        """Cancel everything; the group waits for the end."""
        for lane in self._lanes.values():
            lane.waiting.clear()
            if lane.task is not None:
                lane.task.cancel()

    @property
    def _running(self) -> int:
        return sum(lane.task is not None for lane in self._lanes.values())

    def _count(self, more: int, create: Create) -> None:
        self._waiting += more
        self._waiting_bytes += more * create.size
        if self._waiting < WAITING_MAX and self._waiting_bytes < WAITING_MAX_BYTES:
            self._room.set()
        else:
            self._room.clear()

    async def _run(self, lane: _Lane) -> None:
        try:
            while lane.waiting:
                create = lane.waiting.popleft()
                self._count(-1, create)
                await self._make(create)
        except ConnectionError:
            # The reader of the socket sees it as well, and ends everything.
            lane.waiting.clear()
        finally:
            lane.task = None


def _too_many(message: str) -> SmgError:
    return SmgError(
        ErrorKind.RATE_LIMITED, message, code="websocket_stream_limit_reached", retry_after_s=1.0
    )
