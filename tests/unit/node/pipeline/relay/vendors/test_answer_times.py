"""Times of a vendor's call come into the figures of its target: of good answers, and of silence."""

from dataclasses import dataclass

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.pipeline.relay.vendors.answer_times import AnswerTimes


@dataclass
class Clock:
    at_s: float = 0.0

    def now_ms(self) -> int:
        return round(self.at_s * 1000)

    def monotonic_s(self) -> float:
        return self.at_s


def times_of(load: WorkerLoad, clock: Clock, first_s: float | None, end_s: float) -> AnswerTimes:
    """A call that begins at second 10, with its first word and its end after so long."""
    clock.at_s = 10.0
    times = AnswerTimes(load, clock.at_s, clock)
    if first_s is not None:
        clock.at_s = 10.0 + first_s
        times.spoke()
        clock.at_s += 0.1
        times.spoke()
    clock.at_s = 10.0 + end_s
    return times


def test_a_streamed_answer_has_a_first_word_and_a_rate() -> None:
    load, clock = WorkerLoad("w"), Clock()
    times_of(load, clock, 0.5, 1.5).ended(101, streamed=True)
    assert load.figures is not None
    assert (load.figures.first_s, load.figures.token_s) == (0.5, 0.01)


def test_an_answer_in_one_piece_has_only_its_end() -> None:
    load, clock = WorkerLoad("w"), Clock()
    times_of(load, clock, 2.0, 2.0).ended(100, streamed=False)
    assert load.figures is not None
    assert (load.figures.first_s, load.figures.token_s) == (None, 0.02)


def test_only_silence_of_those_that_break_is_counted() -> None:
    late = SmgError(ErrorKind.UPSTREAM_TIMEOUT, "nothing came")
    broken = SmgError(ErrorKind.UPSTREAM_FAILED, "it broke")
    load, clock = WorkerLoad("w"), Clock()
    times_of(load, clock, None, 1.0).failed(broken)
    times_of(load, clock, 0.5, 9.0).failed(late)
    assert load.figures is not None
    assert load.figures.first_s is None
    times_of(load, clock, None, 30.0).failed(late)
    assert load.figures.first_s == 30.0
