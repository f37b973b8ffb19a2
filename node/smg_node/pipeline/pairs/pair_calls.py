"""Pair calls: prefill and decode call of one request, at once or in turn; finds which is at fault.

The module does not look at their content. The first call computes the prompt and returns; the
second one is a stream, and that is the answer.

When one breaks, `fault` is the leg at fault. An engine that is gone, or full, is at fault itself.
Two that are there and do not come together are a failed hand-over, which is the fault of neither;
but a first call that breaks before the second one is made breaks by itself. `broke` is the call
that reported the error: if the request is retried, another worker makes that call.

Both tasks belong to the reader: they have ended when the generator has. (A TaskGroup cannot do that
around a `yield`: closing the generator would surface as a group of exceptions.)

The second call is not cancelled in the middle of a hand-over, if that can be helped: it is given a
moment to begin. Some engines leak the memory of blocks whose receiver is gone.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.transport.grpc_status import DEADLINE_CODE, UNREACHABLE_CODE, Verdict, verdict

Said = TypeVar("Said")
"""What the second call's stream is made of; never None."""
Leg: TypeAlias = Literal["prefill", "decode"]
Fault: TypeAlias = Literal["prefill", "decode", "transfer"]
Prefill: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

HANDOVER_S: Final = 2.0
"""How long a second call that nobody waits for any more is given to take its blocks."""
BLAME_S: Final = 0.25
"""An engine that loses its partner may say so before the partner's own connection does."""


class PairCalls(Generic[Said]):
    """Two calls, made once."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        """Whose fault it was that a call broke; None while none has."""
        self.broke: Leg | None = None
        """Which of the two broke first, as far as is known."""
        self.worked_off = False
        """Whether the first call is over and done."""

    async def at_once(
        self, prefill: Prefill, stream: AsyncGenerator[Said, None], *, patient: bool = False
    ) -> AsyncGenerator[Said, None]:
        """Yield the items of `stream`, while `prefill` runs in parallel; `patient`: let `prefill`
        end first, for a moment.
        """
        loop = asyncio.get_running_loop()
        working = loop.create_task(self._work(prefill), name="prefill leg")
        # Who knows what was asked for is not to stay as long as the answer takes.
        del prefill
        first = loop.create_task(_first_of(stream), name="decode leg")
        try:
            await asyncio.wait((working, first), return_when=asyncio.FIRST_COMPLETED)
            if not working.done() and (patient or first.exception() is not None):
                await asyncio.wait((working,), timeout=BLAME_S)
            self._check(working)
            said = await self._begin(first)
            while said is not None:
                yield said
                said = await self._next(stream)
            # Its partner has everything.
            await asyncio.wait((working,), timeout=BLAME_S)
        finally:
            working.cancel()
            try:
                # A first call that is over was handed over.
                await self._let_go(stream, first, 0.0 if self.worked_off else HANDOVER_S)
            finally:
                await _ended(working)

    async def in_turn(
        self,
        prefill: Prefill,
        decode: Callable[[float], AsyncGenerator[Said, None]],
        *,
        timeout_s: float,
    ) -> AsyncGenerator[Said, None]:
        """Yield the items of the stream that `decode` makes, once `prefill` is over; it is given
        the time left.
        """
        loop = asyncio.get_running_loop()
        due_s = loop.time() + timeout_s
        try:
            await self._work(prefill)
        except SmgError:
            self.fault = self.broke = "prefill"
            raise
        left_s = due_s - loop.time()
        if left_s <= 0:
            raise SmgError(
                ErrorKind.UPSTREAM_TIMEOUT,
                "the request's time was up when its prompt was worked off",
                code=DEADLINE_CODE,
            )
        stream = decode(left_s)
        del prefill, decode
        asked_s = loop.time()
        first = loop.create_task(_first_of(stream), name="decode leg")
        try:
            said = await self._begin(first)
            while said is not None:
                yield said
                said = await self._next(stream)
        finally:
            await self._let_go(stream, first, asked_s + HANDOVER_S - loop.time())

    async def _work(self, prefill: Prefill) -> None:
        await prefill()
        self.worked_off = True

    def _check(self, working: "asyncio.Task[None]") -> None:
        """Raise the first call's error, if it broke."""
        error = working.exception() if working.done() else None
        if error is not None:
            self.fault = fault_of(error, "prefill") if isinstance(error, SmgError) else "prefill"
            self.broke = "prefill"
            raise error

    async def _begin(self, first: "asyncio.Task[Said | None]") -> Said | None:
        # Whoever waits for a task directly takes it along when cancelled.
        await asyncio.wait((first,))
        try:
            return first.result()
        except SmgError as error:
            silent = error.kind is ErrorKind.UPSTREAM_TIMEOUT and not self.worked_off
            self.fault = "prefill" if silent else fault_of(error, "decode")
            self.broke = "prefill" if silent else "decode"
            raise

    async def _next(self, stream: AsyncGenerator[Said, None]) -> Said | None:
        try:
            return await _first_of(stream)
        except SmgError:
            self.fault = self.broke = "decode"
            raise

    async def _let_go(
        self,
        stream: AsyncGenerator[Said, None],
        first: "asyncio.Task[Said | None]",
        patience_s: float,
    ) -> None:
        """Close the second call; one that may be receiving its blocks is given a moment for it.

        Safe to cancel at every await: an engine that is not told would go on to its last token.
        """
        try:
            if self.fault is None and patience_s > 0:
                await asyncio.wait((first,), timeout=patience_s)
        finally:
            first.cancel()
            try:
                await _ended(first)
            finally:
                # A reader that is still at work was cancelled above, and closes the call itself.
                if first.done():
                    await stream.aclose()


def fault_of(error: SmgError, leg: Leg) -> Fault:
    """Return the leg at fault for a call that broke before the answer began, or the hand-over."""
    if error.code == UNREACHABLE_CODE or verdict(error) is not Verdict.FAILURE:
        return leg
    if error.kind is ErrorKind.UPSTREAM_TIMEOUT:
        return "transfer" if leg == "decode" else "prefill"
    return "transfer" if error.code in _DROPPED else leg


_DROPPED: Final = frozenset({"upstream_abort", "upstream_error", "upstream_cut"})
"""How an engine ends a call whose partner it cannot reach."""


async def _ended(task: "asyncio.Task[Any]") -> None:
    """Wait for the end of a task, and ignore its result."""
    if not task.done():
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()


async def _first_of(stream: AsyncGenerator[Said, None]) -> Said | None:
    return await anext(stream, None)
