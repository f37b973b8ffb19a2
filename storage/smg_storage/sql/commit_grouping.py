"""Commit grouping: turns that come at the same time are committed together (group commit).

A commit costs the same for one turn as for many: a flush to a disk, a few round trips. So while one
is under way, the turns that come meanwhile wait, and the first of them then commits for all. No
turn waits for company: with nothing under way, a turn goes at once, with those that were ready in
the same wake-up of the event loop. There is no task for this: the turn that is first in line does
the work, and hands it on when its own turn is done, when it is cancelled too.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Committed, Turn

Outcome = Committed | StoreError
WriteGroup = Callable[[Sequence[tuple[str, Turn]]], Awaitable[Sequence[Outcome]]]
"""Write turns of tenants as one; StoreError if all of it failed."""

WAITING_MAX: Final = 4_096
GROUP_BYTES_MAX: Final = 16 << 20
"""Of documents in one transaction: a group is not to take so long that those behind it give up."""


class _Waiting:
    """A turn in line. Its future is a result, or None: then it is its turn to lead."""

    __slots__ = ("future", "leads", "size", "tenant", "turn")

    def __init__(self, tenant: str, turn: Turn) -> None:
        self.tenant = tenant
        self.turn = turn
        self.leads = False
        self.size = len(turn.response.input) + len(turn.response.response)
        self.size += sum(len(item.document) for item in turn.items)
        self.future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()


class Grouping:
    """Line of turns, and the commits that lead it."""

    def __init__(self, write: WriteGroup, *, turns_max: int, lanes: int) -> None:
        self._write = write
        self._turns_max = turns_max
        self._lanes = lanes
        """How many groups may be under way at once."""
        self._leaders = 0
        self._line: deque[_Waiting] = deque()

    async def commit(self, tenant: str, turn: Turn) -> Committed:
        """Return when the turn is kept; StoreError if it cannot be."""
        if len(self._line) >= WAITING_MAX:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "too many turns wait to be kept")
        mine = _Waiting(tenant, turn)
        self._line.append(mine)
        if self._leaders < self._lanes:
            self._leaders += 1
            self._call_next()
        try:
            outcome = await mine.future
            if outcome is None:
                outcome = await self._lead(mine)
        except BaseException:
            self._leave(mine)
            raise
        if isinstance(outcome, StoreError):
            raise outcome
        return outcome

    async def _lead(self, mine: _Waiting) -> Outcome:
        """Commit a group that this turn is in, and hand on."""
        mine.leads = True
        group: list[_Waiting] = []
        try:
            # What became ready in this wake-up joins.
            await asyncio.sleep(0)
            group = self._take(mine)
            outcomes = await self._write_all(group)
            for each, outcome in zip(group, outcomes, strict=True):
                if each is not mine and not each.future.done():
                    each.future.set_result(outcome)
            return outcomes[0]
        finally:
            # Those whom a cancelled leader leaves behind are in line again, in their order.
            unserved = [each for each in group[1:] if not each.future.done()]
            self._line.extendleft(reversed(unserved))
            self._call_next()

    async def _write_all(self, group: Sequence[_Waiting]) -> Sequence[Outcome]:
        turns = [(each.tenant, each.turn) for each in group]
        try:
            return await self._write(turns)
        except StoreError as error:
            if len(turns) == 1 or error.kind is StoreErrorKind.UNAVAILABLE:
                return [error] * len(turns)
        # One of them cannot be written, and the database does not say which.
        return [await self._write_one(each) for each in turns]

    async def _write_one(self, turn: tuple[str, Turn]) -> Outcome:
        try:
            return (await self._write([turn]))[0]
        except StoreError as error:
            return error

    def _take(self, mine: _Waiting) -> list[_Waiting]:
        group, size = [mine], mine.size
        while self._line and len(group) < self._turns_max:
            size += self._line[0].size
            if size > GROUP_BYTES_MAX:
                break
            group.append(self._line.popleft())
        return group

    def _call_next(self) -> None:
        """Make the next in line a leader, or have one less."""
        while self._line:
            following = self._line.popleft()
            if not following.future.done():
                following.future.set_result(None)
                return
        self._leaders -= 1

    def _leave(self, mine: _Waiting) -> None:
        """Take a turn that does not wait any longer out of the line;
        one just called to lead hands on.
        """
        if mine in self._line:
            self._line.remove(mine)
        called = mine.future.done() and not mine.future.cancelled() and mine.future.result() is None
        if called and not mine.leads:
            self._call_next()
