"""Message stream: one gRPC call with many answers over own HTTP/2, as its reader holds it.

What comes is handed out inside the wake-up that brought it, so a token wakes no task. A reader's
exception stays here: `deliver` never raises into the connection that others share.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

from smg_node.engines.transport.h2.connection_io import Link
from smg_node.engines.transport.h2.protocol.response_head import FINE, Ending
from smg_node.engines.transport.h2.protocol.stream_state import REFILL_AT, Flow
from smg_node.engines.transport.transport import StatusCode, Take, TransportError

DROPPED: Final = Ending(StatusCode.CANCELLED, "the call was dropped here")
LATE: Final = Ending(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
_REFILL_AT: Final = REFILL_AT


class Owner(Protocol):
    """Owner of a call: is told of its end."""

    def ended(self, stream: "H2Stream") -> None:
        """Note that a call is over, once."""
        ...


class H2Stream(Flow):
    """See `MessageStream`. Its owner begins it; `link` is None until then."""

    __slots__ = (
        "_held",
        "_listed",
        "_loop",
        "_owner",
        "_take",
        "_waiter",
        "due_at",
        "link",
    )

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop, due_at: float) -> None:
        self._begin()
        self._loop = loop
        self._owner = owner
        self._take: Take | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._held = False
        self._listed = True
        self.due_at = due_at
        self.link: Link | None = None

    @property
    def ended(self) -> bool:
        """See `MessageStream`."""
        return self.ending is not None

    def __aiter__(self) -> "H2Stream":
        return self

    async def __anext__(self) -> Sequence[bytes]:
        while True:
            if not self._held:
                if self.messages:
                    batch, self.messages = self.messages, []
                    if self.room <= _REFILL_AT:
                        self._refill()
                    return batch
                if self.ending is not None:
                    if self.ending is FINE:
                        raise StopAsyncIteration
                    raise _error(self.ending)
            await self.pour(None)

    def pour(self, take: Take | None) -> Awaitable[bool]:
        """See `MessageStream`. Without `take` it is waited for something new, which is left where it is."""
        waiter = self._waiter
        assert waiter is None or waiter.done(), "a call has one reader at a time"
        self._waiter = waiter = self._loop.create_future()
        self._take = take
        if self.messages or self.ending is not None:
            self.deliver()
        return waiter

    def pause(self) -> None:
        """See `MessageStream`."""
        self._held = True

    def resume(self) -> None:
        """See `MessageStream`."""
        if self._held:
            self._held = False
            self._loop.call_soon(self.deliver)

    def cancel(self) -> None:
        """See `MessageStream`."""
        waiter = self._waiter
        if waiter is not None and waiter.done():
            # No reader waits any more, and what would have been told need not outlive the call.
            self._waiter = self._take = None
        if self.ending is None:
            self.messages = []
            self.end(DROPPED)

    def end(self, ending: Ending) -> None:
        """End the call from this node's side, and tell its reader."""
        if self.ending is None:
            if self.link is not None:
                self.link.drop(self, ending)
            self.ending = ending
            self._held = False
            self.deliver()

    def deliver(self) -> None:
        """See `Flow`."""
        ending = self.ending
        if ending is not None and self._listed:
            self._listed = False
            if ending is not FINE:
                self._judge(ending)
            self._owner.ended(self)
        waiter = self._waiter
        if not (waiter is None or self._held or waiter.done()):
            take = self._take
            if take is None:
                if self.messages or self.ending is not None:
                    waiter.set_result(True)  # a reader that pulls looks for itself
            elif (not self.messages or self._pour(take, waiter)) and self.ending is not None:
                self._conclude(waiter, self.ending)
        if self.room <= _REFILL_AT:
            self._refill()

    def _judge(self, ending: Ending) -> None:
        """Turn a reset by the server's faster clock into DEADLINE_EXCEEDED: it resets what is
        late.
        """
        reset = ending.status is StatusCode.CANCELLED and ending is not DROPPED
        if reset and self._loop.time() >= self.due_at:
            self.ending = LATE

    def _pour(self, take: Take, waiter: "asyncio.Future[bool]") -> bool:
        """Hand out what there is; return whether more is wanted and the waiting reader has not been
        told so far.
        """
        batch, self.messages = self.messages, []
        # A cancel from inside must not settle what is settled below.
        self._waiter = None
        try:
            more = take(batch)
        except BaseException as error:  # whatever it is, it goes to its reader only
            self.cancel()
            if isinstance(error, StopIteration):
                # A future cannot carry it.
                error = RuntimeError(f"{error!r} out of a reader")
            if not waiter.done():
                waiter.set_exception(error)
            return False
        if waiter.done():
            return False  # it has cancelled the task that waits
        if more:
            self._waiter = waiter
            return True
        self._take = None
        waiter.set_result(False)
        return False

    def _conclude(self, waiter: "asyncio.Future[bool]", ending: Ending) -> None:
        """Tell the waiting reader of the end, once everything before it has been handed out."""
        if self._held or self.messages:
            return
        self._waiter = self._take = None
        if ending is FINE:
            waiter.set_result(True)
        else:
            waiter.set_exception(_error(ending))

    def _refill(self) -> None:
        """Open the window again once the reader has taken everything that came."""
        quiet = self._held or self.messages or self.ending is not None
        if not quiet and self.link is not None:
            self.link.refill(self)


class Notice(H2Stream):
    """A call whose answer is not wanted."""

    __slots__ = ()

    def deliver(self) -> None:
        """See `Flow`."""
        self.messages = []
        H2Stream.deliver(self)


def _error(ending: Ending) -> TransportError:
    return TransportError(ending.status, ending.message, ending.trailers)
