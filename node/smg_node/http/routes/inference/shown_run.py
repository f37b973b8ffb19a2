"""Shown run: the events of a generation, written to its client's stream within the wake-up that brought them."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import End, Event, Fail, Finish
from smg_node.core.generation.request import Sampling
from smg_node.dialects.dialect import Presenter
from smg_node.http.message.event_stream import EventStream, Holding
from smg_node.http.message.keepalive import KeepaliveTimer

ENDS: Final = (End, Fail)
"""What ends a stream of events."""
_ROW_BYTES: Final = 64
"""A token of a list of log probabilities, as JSON."""


class ShownRun(msgspec.Struct, eq=False):
    """A run that is being streamed to a client."""

    stream: EventStream
    presenter: Presenter
    pulse: KeepaliveTimer
    holding: Holding
    around: Callable[[], FrameTemplate | None]
    """As `Through` has it, and `put`."""
    put: Callable[[bytes], bool]
    last: Event | None = None

    def receive(self, batch: Sequence[Event]) -> bool:
        """Write events at once; true if the client is behind.

        Raises the error of a run that failed while nothing has been written. ConnectionError if the client is gone.
        """
        self.last = last = batch[-1]
        stream = self.stream
        if isinstance(last, ENDS):
            if isinstance(last, Fail) and not stream.committed:
                raise last.error
            # The client has everything; the run may still tidy up before it ends by itself.
            stream.end(self.presenter.frames(batch))
            return False
        frames = self.presenter.frames(batch)
        if isinstance(last, Finish) and frames:
            stream.hold(frames, self.holding, alone=self.pulse.alone)
            return False
        return bool(frames) and stream.put(frames)

    def failure(self) -> SmgError | None:
        """Return the error that the run ended with, as the client knows."""
        last = self.last
        if isinstance(last, Fail):
            return last.error
        assert isinstance(last, End), "a run ended without End or Fail"
        return None


def answer_size(answer: Answer, sampling: Sampling) -> int:
    """Return about how many bytes the log probabilities of an answer take."""
    most = max(sampling.logprobs or 0, sampling.prompt_logprobs or 0)
    usage = answer.usage
    return (usage.prompt_tokens + usage.completion_tokens) * (most + 1) * _ROW_BYTES
