"""What decisions read follows from the counts at once, and a judgement that is spared would have changed nothing."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.load import Load
from smg_node.fleet.load.worker_load import LoadOptions, WorkerLoad, weigh

Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["begin", "spoke", "end", "hear", "sample", "stick", "unstick", "retune", "tick"]
        ),
        st.integers(0, 40),
        st.integers(0, 30),
    ),
    max_size=40,
)


def take(one: WorkerLoad, step: Step, now_s: float) -> None:
    """Let something happen to a worker."""
    what, number, other = step
    ways: dict[str, Callable[[], object]] = {
        "begin": lambda: one.begin(100 * number),
        "spoke": lambda: one.prefilled(min(100 * number, one.own_tokens)),
        "end": lambda: one.end(0) if one.own_inflight else None,
        "hear": lambda: one.hear(number, 100 * other),
        "sample": lambda: one.sample(
            Load(0, number, other // 2, 16, None, other / 30, None, None, silence_ms=400 * number),
            now_s,
        ),
        "stick": lambda: one.stick(stuck=True),
        "unstick": lambda: one.stick(stuck=False),
        "retune": lambda: one.retune(LoadOptions(waiting_max=number, kv_max=other / 30 + 0.01)),
        "tick": lambda: one.tick(now_s),
    }
    ways[what]()


class Told:
    """A worker, and how often it said that something turned."""

    def __init__(self, moved: list[WorkerLoad] | None = None) -> None:
        self.times = 0
        self.load = WorkerLoad("w", changed=self._turned, moved=moved)
        self.load.sized(16)

    def _turned(self) -> None:
        self.times += 1

    def judged(self) -> tuple[object, ...]:
        return self.load.full, self.load.overloaded, self.load.stuck, self.times

    def seen(self) -> tuple[object, ...]:
        one = self.load
        return one.full, one.overloaded, one.stuck, one.base_s, one.prefill_s, self.times


@settings(deadline=None)
@given(steps)
def test_a_judgement_that_is_spared_would_have_changed_nothing(said: list[Step]) -> None:
    spared, judged = Told(), Told()
    for at, step in enumerate(said):
        judged.load._easy = 0
        for each in (spared, judged):
            take(each.load, step, float(at))
        assert spared.seen() == judged.seen()


@pytest.mark.parametrize(
    ("options", "full_once", "overloaded"),
    [
        (LoadOptions(waiting_max=0, kv_max=0.11), False, True),
        (LoadOptions(waiting_max=0, kv_max=1.0), False, True),
        (LoadOptions(waiting_max=1, kv_max=0.0), False, True),
        (LoadOptions(waiting_max=1, kv_max=0.05), False, False),
        # Its memory is empty: what it has to fall below must not lie below that.
        (LoadOptions(waiting_max=1, kv_max=0.05), True, False),
    ],
)
def test_what_was_judged_once_is_judged_so_again_while_nothing_changes(
    options: LoadOptions, full_once: bool, overloaded: bool
) -> None:
    one = WorkerLoad("w")
    one.sized(16)
    one.retune(options)
    if full_once:
        one.hear(100, 0)
        assert one.overloaded
        one.hear(0, 0)
    for _ in range(3):
        assert one.overloaded is overloaded
        one.begin(0)
        one._easy = 0


@settings(deadline=None)
@given(steps)
def test_a_second_look_says_what_the_first_one_said(said: list[Step]) -> None:
    one = Told()
    for at, step in enumerate(said):
        take(one.load, step, float(at))
        first = one.seen()
        one.load._easy = 0
        one.load._weigh()
        assert one.seen() == first


@settings(deadline=None)
@given(st.lists(st.tuples(steps, st.sampled_from(["weigh", "ask", ""])), max_size=8))
def test_what_is_weighed_before_a_decision_is_what_was_weighed_at_once(
    said: list[tuple[list[Step], str]],
) -> None:
    moved: list[WorkerLoad] = []
    late, at_once, now_s = Told(moved), Told(), 0.0
    for several, look in said:
        for step in several:
            now_s += 1.0
            for each in (late, at_once):
                take(each.load, step, now_s)
            # Whether it may be chosen at all is never late.
            assert late.judged() == at_once.judged()
        if look == "weigh":
            weigh(moved)
            assert not moved
            assert late.seen() == at_once.seen()
        elif look == "ask":
            assert late.load.weighed().wait_s == at_once.load.wait_s
    weigh(moved)
    assert late.seen() == at_once.seen()


@settings(deadline=None)
@given(steps)
def test_what_a_decision_reads_is_what_its_parts_come_to(said: list[Step]) -> None:
    one = WorkerLoad("w")
    for at, step in enumerate(said):
        take(one, step, float(at))
        assert one.base_s == one.wait_s + one.pressure_s
        assert one.prefill_s == 1 / one.prefill_rate


def test_a_worker_that_was_measured_says_what_a_token_takes() -> None:
    one = WorkerLoad("w")
    one.rate(100_000, 5.0, now_s=1.0)
    assert one.prefill_rate > 8_000
    assert one.prefill_s == pytest.approx(1 / one.prefill_rate)
