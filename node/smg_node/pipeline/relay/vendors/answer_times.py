"""Answer times: notes in a target's figures when its answer began and how long it took; made for each call of a vendor."""

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.fleet.load.target_figures import TargetFigures
from smg_node.fleet.load.worker_load import WorkerLoad


class AnswerTimes:
    """Times of one call that began at `began_s`. One that breaks is no answer; one without a word in time was slow."""

    def __init__(self, load: WorkerLoad, began_s: float, clock: Clock) -> None:
        if load.figures is None:
            load.figures = TargetFigures()
        self._figures = load.figures
        self._began_s = began_s
        self._clock = clock
        self._first_s: float | None = None

    def spoke(self) -> None:
        """Note the first word."""
        if self._first_s is None:
            self._first_s = self._clock.monotonic_s()

    def ended(self, tokens: int, *, streamed: bool) -> None:
        """Note the end of a good answer, and whether it came bit by bit."""
        now_s, first_s = self._clock.monotonic_s(), self._first_s
        if streamed and first_s is not None:
            self._figures.streamed(first_s - self._began_s, now_s - first_s, tokens, now_s)
        else:
            self._figures.whole(now_s - self._began_s, tokens, now_s)

    def failed(self, error: SmgError) -> None:
        """Note that there is no answer."""
        if error.kind is ErrorKind.UPSTREAM_TIMEOUT and self._first_s is None:
            now_s = self._clock.monotonic_s()
            self._figures.silent(now_s - self._began_s, now_s)
