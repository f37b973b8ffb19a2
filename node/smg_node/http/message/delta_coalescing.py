"""Delta coalescing: merges a stream's tokens within `coalesce_ms`, so that a busy node writes less.

A stream that has not been written to for `coalesce_ms` is written to at once, so no token waits
where tokens come slowly. A token that comes sooner waits for one timer, the same for all streams of
this loop: it fires `coalesce_ms` after the first of them began to wait, and all waiting tokens go
out in that one wake-up. So none waits for longer than that. Borders of blocks, the first text of a
block and the end take waiting tokens along (`core/generation/delta_joiner`).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.delta_joiner import Joiner
from smg_node.core.generation.events import Event
from smg_node.dialects.dialect import Presenter
from smg_node.http.message.event_stream import EventStream

_log = logging.getLogger("smg_node.http")


class DeltaCoalescer:
    """Timer of all streams with waiting tokens; runs only while there are any. `on_saved` gets the
    number of saved events.
    """

    def __init__(self, *, coalesce_ms: int, on_saved: Callable[[int], None]) -> None:
        self.on_saved = on_saved
        self._waiting: dict[CoalescingPresenter, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.within_s = coalesce_ms / 1000

    @property
    def on(self) -> bool:
        """Whether tokens of new streams are merged at all."""
        return self.within_s > 0

    def retune(self, *, coalesce_ms: int) -> None:
        """Apply another time; tokens that wait now wait as long as before."""
        self.within_s = coalesce_ms / 1000

    def over(self, presenter: Presenter, stream: EventStream) -> "CoalescingPresenter":
        """Return a presenter that merges events, and writes some of them by itself, into `stream`."""
        return CoalescingPresenter(self, presenter, stream)

    def wait(self, presenter: "CoalescingPresenter") -> None:
        """Flush this presenter at the next tick."""
        self._waiting[presenter] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.within_s, self._tick)

    def close(self) -> None:
        """Stop; waiting tokens are not written."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for presenter in waiting:
            presenter.flush()


class CoalescingPresenter:
    """Renders one generation in fewer events: events that `frames` holds are written by the timer
    or with the next frames.
    """

    __slots__ = ("_behind", "_joiner", "_joining", "_presenter", "_stream", "_written_s")

    def __init__(self, joining: DeltaCoalescer, presenter: Presenter, stream: EventStream) -> None:
        self._joining = joining
        self._presenter = presenter
        self._stream = stream
        self._joiner = Joiner()
        self._written_s = 0.0
        self._behind = False

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events and for waiting ones, or nothing where these wait as
        well.

        Nothing waits for a client that is behind: only a write notices that, and stops the engine.
        """
        joining, now_s = self._joining, asyncio.get_running_loop().time()
        urgent = self._joiner.take(events)
        if urgent or self._behind or now_s - self._written_s >= joining.within_s:
            self._written_s = now_s
            self._behind = False
            return self._given()
        joining.wait(self)
        return b""

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        return self._presenter.answer(answer)

    def around(self) -> FrameTemplate | None:
        """Return None: merging needs events."""
        return None

    def flush(self) -> None:
        """Write what waits; never raises. A stream for which that fails is broken off."""
        if self._joiner.empty:
            return
        self._written_s = asyncio.get_running_loop().time()
        try:
            frames = self._given()
            self._behind = bool(frames) and self._stream.put(frames)
        except ConnectionError:
            # Whoever owns the stream finds out by himself.
            return
        except Exception:
            # A door: a mistake of ours ends this stream, and no other that waits for the timer.
            _log.exception("joined events could not be presented")
            self._stream.break_off()

    def _given(self) -> bytes:
        told, saved = self._joiner.give()
        if saved:
            self._joining.on_saved(saved)
        return self._presenter.frames(told)
