"""Spool replay: writes spooled turns to the store when it is available again, each thread in order.

Up to 32 threads at a time, each in order; no turn is forgotten before the store has confirmed it.
While the store is unavailable everything waits, with backoff from 0.1 s to 30 s, or until the store
is known to be back. A turn that the available store refuses ten times is set aside as a dead
letter: it would block its thread for ever.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from smg_node.history.spool.spool import Spool, Tag, Waiting
from smg_node.history.spool.spool_format import SpooledTurn
from smg_storage.errors import StoreError, StoreErrorKind

LANES: Final = 32
IN_A_ROW: Final = 16
"""So many turns of a thread are written before it is another one's turn."""
TRIES_MAX: Final = 10
FIRST_S: Final = 0.1
MOST_S: Final = 30.0
AWAY_S: Final = 1.0
"""So often it asks whether the store is back, if nobody says so."""
ADOPT_EVERY_S: Final = 10.0
"""So often it looks for what an operator gave back to the spool."""

_log: Final = logging.getLogger("smg_node.history")


class Replay:
    """Empties `spool` through `commit`, which raises StoreError. `away` says whether the store is
    unavailable.
    """

    def __init__(
        self,
        spool: Spool,
        commit: Callable[[SpooledTurn], Awaitable[object]],
        *,
        away: Callable[[], bool],
        now_s: Callable[[], float],
        adopt_every_s: float = ADOPT_EVERY_S,
    ) -> None:
        self.written = 0
        """Turns that came into the store this way."""
        self._spool: Final = spool
        self._commit: Final = commit
        self._away: Final = away
        self._now_s: Final = now_s
        self._adopt_every_s: Final = adopt_every_s
        self._more: Final = asyncio.Event()
        self._wait_s = FIRST_S
        self._failed = False
        spool.changed = self._more.set

    async def run(self) -> None:
        """Write spooled turns, until cancelled."""
        looked_s = self._now_s()
        while True:
            self._more.clear()
            wait_s = AWAY_S if self._away() else self._spool.next_s() - self._now_s()
            look_s = looked_s + self._adopt_every_s - self._now_s()
            if min(wait_s, look_s) > 0:
                await self._sleep(min(wait_s, look_s))
            if self._now_s() >= looked_s + self._adopt_every_s:
                looked_s = self._now_s()
                await self._adopt()
            if not self._away():
                await self.turn()

    async def turn(self) -> None:
        """Write some of the turns that are due."""
        tags = self._spool.take(self._now_s(), LANES)
        before, self._failed = self.written, False
        async with asyncio.TaskGroup() as group:
            for tag in tags:
                group.create_task(self._thread(tag))
        if self.written > before:
            self._wait_s = FIRST_S
        elif self._failed:
            self._wait_s = min(2 * self._wait_s, MOST_S)

    async def _sleep(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(min(wait_s, MOST_S)):
                await self._more.wait()
        except TimeoutError:
            return

    async def _adopt(self) -> None:
        try:
            await self._spool.adopt()
        except OSError as error:
            _log.warning("history: the spool cannot be looked through (%s)", error)

    # ── One thread ───────────────────────────────────────────────────────────

    async def _thread(self, tag: Tag) -> None:
        due_s: float | None = None
        written: list[Waiting] = []
        try:
            for one in self._spool.of(tag, IN_A_ROW):
                due_s = await self._one(one, written)
                if due_s is not None:
                    break
        finally:
            await self._written(written)
            self._spool.give_back(tag, due_s=due_s)

    async def _one(self, one: Waiting, written: list[Waiting]) -> float | None:
        """Write one turn; return when its thread is to be tried again, None to go on."""
        try:
            turn = await self._spool.load(one)
        except (OSError, ValueError) as error:
            _log.error("history: a turn cannot be read from the spool (%s)", error)
            return self._later()
        try:
            await self._commit(turn)
        except StoreError as error:
            if error.kind is StoreErrorKind.UNAVAILABLE:
                return self._later()
            # What was written before it has to be forgotten first: turns go in order.
            await self._written(written)
            return await self._refused(one, turn, error)
        written.append(one)
        return None

    async def _refused(self, one: Waiting, turn: SpooledTurn, error: StoreError) -> float | None:
        one.tries += 1
        if one.tries < TRIES_MAX:
            return self._now_s() + min(FIRST_S * 2.0 ** (one.tries - 1), MOST_S)
        response_id = turn.turn.response.id
        try:
            buried = await self._spool.bury(one, turn, kind=error.kind.value, reason=error.message)
        except OSError as failure:
            _log.error("history: turn %s cannot be set aside (%s)", response_id, failure)
            buried = False
        if not buried:
            return self._now_s() + MOST_S
        _log.error(
            "history: the store does not take turn %s (%s): set aside, see smg-admin db dead list",
            response_id,
            error.message,
            extra={"fields": {"event": "turn_dead", "response": response_id}},
        )
        return None

    async def _written(self, ones: list[Waiting]) -> None:
        if not ones:
            return
        done: Sequence[Waiting] = tuple(ones)
        ones.clear()
        self.written += len(done)
        try:
            await self._spool.done(done)
        except OSError as error:
            _log.warning("history: it cannot be noted what is written of the spool (%s)", error)

    def _later(self) -> float:
        self._failed = True
        return self._now_s() + self._wait_s
