"""What the calls of a generation say, on its way to whoever hears it."""

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
    """Whoever hears has raised `error`, which says nothing of any engine."""

    def __init__(self, error: SmgError) -> None:
        super().__init__(str(error))
        self.error = error


class CutShortError(Exception):
    """The answers have been ended from outside, and their calls are to be let go."""


class EventSink:
    """Tells a receiver, and what looks on; the same for all legs of a generation."""

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
        """Whether frames may be told that nobody made events of."""
        return self._through is not None

    @property
    def counts(self) -> bool:
        """Whether `put` is to be told of frames. Where it is not, they may go to `straight`, which is said to `mute` if it fails."""
        return False

    @property
    def straight(self) -> Callable[[bytes], bool]:
        """What takes frames."""
        assert self._through is not None, "frames are made only where they are taken"
        return self._through.put

    def mute(self) -> None:
        """Tell nothing any more: who hears has had an end of its own."""
        self._receive = _deaf

    def around(self) -> FrameTemplate | None:
        """Return what is to be around them now, if that is all there is to them."""
        return None if self._through is None else self._through.around()

    def room(self) -> TokenAllowance:
        """Return how far frames may be told from here; the next that goes beyond it is to be said."""
        return BOUNDLESS

    @property
    def outdated(self) -> bool:
        """Whether there may be less room than `room` has said."""
        return False

    def say(self, events: Sequence[Event]) -> bool:
        """Tell; true if `ready` is to be awaited before anything more is asked for.

        What the receiver raises is raised here, and is the end of it: other legs may have something to say before
        they are cancelled, and it hears none of that. It is raised as `ReceiverError` where it would be taken for an engine's.
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
        """Tell in frames; otherwise as `say`."""
        assert self._through is not None, "frames are made only where they are taken"
        try:
            return self._through.put(frames)
        except BaseException:
            self._receive = _deaf
            raise

    async def ready(self) -> None:
        """Return when more may be said; one leg after the other, however many wait."""
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


NOBODY_LISTENS: Final = EventSink(_unheard, None, None)
"""For stories that tell nothing."""
