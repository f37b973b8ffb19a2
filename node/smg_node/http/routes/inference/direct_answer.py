"""Direct answer: the answer of own engines behind a route, to a client whose own bytes were to be passed on.

It is written as that of any generation: events become the client's API within the wake-up that brought them. Until its
first word nothing of it is written, so that another target may answer instead.
"""

from collections.abc import Sequence

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event, Fail
from smg_node.core.generation.request import Sampling
from smg_node.dialects.dialect import Presenter
from smg_node.http.message.delta_coalescing import DeltaCoalescer
from smg_node.http.message.event_stream import EventStream, Holding
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.message.large_bodies import LargeBodies
from smg_node.http.routes.inference.shown_run import ENDS, ShownRun, answer_size
from smg_node.pipeline.generation.run_interface import Run
from smg_node.pipeline.relay.relay_context import Translation


class DirectAnswers:
    """What all direct answers of a node share."""

    def __init__(
        self, large: LargeBodies, pulse: KeepaliveTimer, joining: DeltaCoalescer, holding: Holding
    ) -> None:
        self.large = large
        self._pulse = pulse
        self._joining = joining
        self._holding = holding

    def opened(self, translation: Translation, stream: EventStream) -> "DirectAnswer":
        """Return the outlet of one call, into the client's stream if it asked for one."""
        wish, presenter = translation.wish, translation.presenter
        assert presenter is not None, "it is told in its client's API"
        if not wish.stream:
            return DirectAnswer(self.large, presenter, wish.sampling, None)
        if self._joining.on:
            presenter = self._joining.over(presenter, stream)
        shown = _Direct(stream, presenter, self._pulse, self._holding, presenter.around, stream.put)
        return DirectAnswer(self.large, presenter, wish.sampling, shown)


class DirectAnswer:
    """Outlet of one call; see `relay_context.Outlet`."""

    def __init__(
        self,
        large: LargeBodies,
        presenter: Presenter,
        sampling: Sampling,
        shown: "_Direct | None",
    ) -> None:
        self._large = large
        self._presenter = presenter
        self._sampling = sampling
        self._shown = shown
        self._run: Run | None = None

    @property
    def said(self) -> bool:
        """See `Outlet`."""
        return self._shown is not None and self._shown.last is not None

    @property
    def ended(self) -> bool:
        """Whether the client's stream has its last event."""
        return self._shown is not None and self._shown.ended

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters without effect."""
        return () if self._run is None else self._run.ignored

    def failed(self, error: SmgError) -> bytes:
        """Return the last event of a stream that ends with an error, in the client's API."""
        return self._presenter.frames((Fail(error),))

    async def tell(self, run: Run) -> bytes | None:
        """See `Outlet`."""
        self._run, shown = run, self._shown
        if shown is None:
            answer, sampling = await run.answer(), self._sampling
            size = 0
            if sampling.logprobs is not None or sampling.prompt_logprobs is not None:
                size = answer_size(answer, sampling)
            return await self._large.made(size, lambda: self._presenter.answer(answer))
        await run.tell(shown.receive, shown.stream.drained, shown)
        if shown.failed is not None:
            raise shown.failed
        return None


class _Direct(ShownRun, eq=False):
    """A stream of which nothing is written before the first word."""

    failed: SmgError | None = None
    ended: bool = False

    def receive(self, batch: Sequence[Event]) -> bool:
        """See `ShownRun`."""
        last = batch[-1]
        if isinstance(last, Fail):
            self.failed = last.error
            if self.last is None:
                return False
        behind = ShownRun.receive(self, batch)
        self.ended = isinstance(last, ENDS)
        return behind
