"""Event sink: delivers a generation's events and frames to its receiver; shared by all of its legs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from smg_node.core.errors import SmgError
from smg_node.core.generation.byte_sink import BOUNDLESS, ByteSink, FrameTemplate, TokenAllowance
from smg_node.core.generation.events import Event
from smg_node.pipeline.stream.call_constraint import ConstraintCheck

Receive: TypeAlias = Callable[[Sequence[Event]], bool | None]
"""Hears what one wake-up brought, within that wake-up; true if it is to be waited for before more is asked for."""
Ready: TypeAlias = Callable[[], Awaitable[None]]
"""Returns when whoever hears can take more."""


class ReceiverError(Exception):
    """An error of the receiver, `error`, which says nothing about an engine."""

    def __init__(self, error: SmgError) -> None:
        super().__init__(str(error))
        self.error = error


class CutShortError(Exception):
    """The answers were ended from outside, and their calls are to be cancelled."""


class EventSink:
    """Sends events to the receiver, and to the check of constraints; one for all legs of a
    generation.
    """

    __slots__ = ("_keeping", "_ready", "_receive", "_through", "_turn")

    def __init__(
        self,
        receive: Receive,
        ready: Ready | None,
        keeping: ConstraintCheck | None,
        through: ByteSink | None = None,
    ) -> None:
        self._receive = receive
        self._ready = ready
        self._keeping = keeping
        # Who looks on sees events only.
        self._through = through if keeping is None else None
        self._turn: asyncio.Lock | None = None

    @property
    def cuts(self) -> bool:
        """Whether frames may be sent as bytes, without events."""
        return self._through is not None

    @property
    def counts(self) -> bool:
        """Whether frames have to pass through `put`. If not, they may go to `straight`; a failure
        there is reported with `mute`.
        """
        return False

    @property
    def straight(self) -> Callable[[bytes], bool]:
        """Function that takes frames."""
        assert self._through is not None, "frames are made only where they are taken"
        return self._through.put

    def mute(self) -> None:
        """Send nothing any more: the receiver has failed."""
        self._receive = _deaf

    def around(self) -> FrameTemplate | None:
        """Return the template around plain text in the open block, if frames need nothing else now."""
        return None if self._through is None else self._through.around()

    def room(self) -> TokenAllowance:
        """Return how many tokens may be sent as frames from here; the next beyond that needs `say`."""
        return BOUNDLESS

    @property
    def outdated(self) -> bool:
        """Whether the allowance may be smaller than `room` has said."""
        return False

    def say(self, events: Sequence[Event]) -> bool:
        """Send events; true if `ready` is to be awaited before more is read.

        An error of the receiver is raised here, and no more is sent to it, although other legs may
        have events before they are cancelled. It is raised as `ReceiverError` where it could be
        taken for an engine's error.
        """
        if self._keeping is not None:
            self._keeping.look(events)
        try:
            return bool(self._receive(events))
        except SmgError as error:
            self._receive = _deaf
            raise ReceiverError(error) from error
        except BaseException:
            self._receive = _deaf
            raise

    def put(self, frames: bytes) -> bool:
        """Send frames; otherwise as `say`."""
        assert self._through is not None, "frames are made only where they are taken"
        try:
            return self._through.put(frames)
        except BaseException:
            self._receive = _deaf
            raise

    async def ready(self) -> None:
        """Return when more may be sent; one leg after the other, however many wait."""
        if self._turn is None:
            self._turn = asyncio.Lock()
        async with self._turn:
            await self._heard()

    async def _heard(self) -> None:
        if self._ready is None:
            return
        try:
            await self._ready()
        except SmgError as error:
            raise ReceiverError(error) from error


def _deaf(_events: Sequence[Event]) -> bool:
    return True


def _unheard(_events: Sequence[Event]) -> bool:
    raise AssertionError("a silent story tells nothing")


ENDED: Final = EventSink(_deaf, None, None)
"""For generations that are over: whoever heard them is let go."""
NOBODY_LISTENS: Final = EventSink(_unheard, None, None)
"""For stories that tell nothing."""
