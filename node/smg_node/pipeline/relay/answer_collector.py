"""Answer collector: collects the events of one vendor's or worker's answer out of its bytes. Pure.

Where its client does not see them before they are whole, they are told at the end only: until then another worker may
answer instead.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import UNSAID, Begin, Event, Usage
from smg_node.core.generation.request import GenerateRequest
from smg_node.dialects.provider_dialect import AnswerListener
from smg_node.dialects.worker_errors import WorkerError
from smg_node.engines.transport.grpc_status import (
    CLOSED_CODE,
    DEADLINE_CODE,
    PROVIDER_UNREACHABLE_CODE,
    UNREACHABLE_CODE,
)
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.worker_answers import failure_of
from smg_node.pipeline.retry import STALLED_CODE

ListenAs: TypeAlias = Callable[[Begin, int, Collection[str]], AnswerListener]
"""Returns the listener of an answer: told its beginning, an estimate of the prompt's tokens, and ids of earlier calls."""
WHOLE_MAX_BYTES: Final = 16 * 1024 * 1024
"""An answer that is not streamed, though it was to be, may be so long."""
_CUT_CODES: Final = frozenset(
    {UNREACHABLE_CODE, PROVIDER_UNREACHABLE_CODE, CLOSED_CODE, STALLED_CODE, DEADLINE_CODE}
)
"""Codes of a call that came to no end of its own: what its worker had finished before stays finished."""


def begin_of(request: GenerateRequest, answer_id: str, now_ms: int) -> Begin:
    """Return how the answer to a request begins."""
    temperature, top_p = request.sampling.temperature, request.sampling.top_p
    return Begin(
        id=answer_id,
        model=request.model,
        created_s=now_ms // 1000,
        prompt_tokens=0,
        temperature=UNSAID if temperature is None else temperature,
        top_p=UNSAID if top_p is None else top_p,
    )


class AnswerCollector:
    """Collector of one call. `seen`: its client sees the events before they are whole."""

    def __init__(self, reader: AnswerListener, *, seen: bool) -> None:
        self._reader = reader
        self._seen = seen
        self._out: list[Event] = []
        self._head: Head | None = None
        self._body = bytearray()
        self._ended = False
        self.used: Usage | None = None
        """What it cost, once it is over."""

    def hear(self, piece: Head | bytes) -> bool:
        """Feed a piece; whether there are events to send."""
        if isinstance(piece, Head):
            self._head = piece
            return False
        head = self._head
        assert head is not None, "an answer begins with its head"
        if head.events:
            with _understood():
                self._reader.feed(piece, self._out)
            return self._seen and bool(self._out)
        self._body += piece
        if len(self._body) > WHOLE_MAX_BYTES:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the worker did not stream its answer")
        return False

    @property
    def spent(self) -> Usage | None:
        """What its vendor has said by now that the answer costs, its end or not."""
        return self._reader.spent

    @property
    def deltas(self) -> int:
        """How many pieces of the answer came by now."""
        return self._reader.deltas

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if what it cost, or the end of the stream, is still missing."""
        return self._reader.finished

    def over(self) -> None:
        """End the answer; UPSTREAM_FAILED if it is not complete."""
        head = self._head
        assert head is not None, "an answer begins with its head"
        with _understood():
            if not head.events:
                self._reader.feed_whole(bytes(self._body), self._out)
            self._reader.end(self._out)
        self._ended = True
        self.used = next((event for event in self._out if isinstance(event, Usage)), None)

    def take(self) -> list[Event]:
        """Return the events since the last call."""
        out, self._out = self._out, []
        return out

    def ending(self, failure: SmgError | None) -> list[Event]:
        """Return the last events of the generation, whose call ended with `failure` or with its
        end.
        """
        cut = failure is not None and failure.code in _CUT_CODES
        if not self._ended and cut and self._reader.finished:
            try:
                self._reader.end(self._out)
                self._ended = True
            except (SmgError, WorkerError):
                pass
        if not self._ended:
            assert failure is not None, "what ends well ends itself"
            self._reader.fail(failure, self._out)
        return self.take()


@contextmanager
def _understood() -> Iterator[None]:
    """Map a worker's error text to its HTTP status, also in the middle of a stream."""
    try:
        yield
    except WorkerError as said:
        raise failure_of(said, None) from said
