"""Who waits is served by class and age, is lifted with time, and never stands twice."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.request_context import PRIORITIES, Priority
from smg_node.routing.wait_queue import (
    DEFAULTS,
    NEVER_S,
    ClassOptions,
    LineFull,
    QueueOptions,
    Ticket,
    WaitQueue,
)
from support.tools.example_counts import example_count

FAR_S = 1e9


def small(**classes: ClassOptions) -> QueueOptions:
    roomy = ClassOptions(1000, FAR_S, NEVER_S)
    chosen: Mapping[Priority, ClassOptions] = {
        rank: classes.get(rank, roomy) for rank in PRIORITIES
    }
    return QueueOptions(chosen)


def enter(line: WaitQueue, rank: Priority, now_s: float = 0.0) -> Ticket:
    return line.enter(rank, now_s, FAR_S)


def test_an_empty_line_has_nobody() -> None:
    line = WaitQueue()
    assert line.next(0.0) is None
    assert line.expired(0.0) == []
    assert line.next_s() == NEVER_S
    assert len(line) == 0


def test_the_urgent_class_goes_first_and_within_a_class_who_came_first() -> None:
    line = WaitQueue(small())
    bulk, first, second, urgent = (
        enter(line, "bulk"),
        enter(line, "default"),
        enter(line, "default"),
        enter(line, "system"),
    )
    assert [line.next(1.0) for _ in range(5)] == [urgent, first, second, bulk, None]


def test_who_is_called_and_finds_no_worker_stands_where_it_stood() -> None:
    line = WaitQueue(small())
    first, second = enter(line, "default"), enter(line, "default")
    called = line.next(1.0)
    assert called is first
    assert line.next(1.0) is second
    line.back(second, 1.0)
    line.back(first, 1.0)
    assert [line.next(2.0), line.next(2.0), line.next(2.0)] == [first, second, None]
    assert line.counts()["default"].served == 2


def test_who_leaves_is_not_called_and_may_leave_again() -> None:
    line = WaitQueue(small())
    first, second = enter(line, "default"), enter(line, "default")
    line.leave(first)
    line.leave(first)
    assert line.next(0.0) is second
    line.leave(second)
    counts = line.counts()["default"]
    assert (counts.entered, counts.served, counts.left, counts.waiting) == (2, 1, 1, 0)


def test_a_full_class_refuses_and_leaves_the_others_their_places() -> None:
    line = WaitQueue(small(default=ClassOptions(2, FAR_S, NEVER_S)))
    enter(line, "default")
    second = enter(line, "default")
    with pytest.raises(LineFull) as refusal:
        enter(line, "default")
    assert refusal.value.rank == "default"
    assert refusal.value.retry_after_s == 10.0
    enter(line, "bulk")
    line.leave(second)
    enter(line, "default")
    assert line.counts()["default"].refused == 1


def test_a_class_without_places_refuses_everybody() -> None:
    line = WaitQueue(small(bulk=ClassOptions(0, 1.0, NEVER_S)))
    with pytest.raises(LineFull):
        enter(line, "bulk")


def test_the_time_to_come_again_is_what_those_before_need_at_the_present_pace() -> None:
    line = WaitQueue(small(default=ClassOptions(40, FAR_S, NEVER_S)))
    for _ in range(40):
        enter(line, "default")
    for step in range(20):
        line.next(step / 2)
        enter(line, "default", step / 2)
    with pytest.raises(LineFull) as refusal:
        enter(line, "default", 9.9)
    # 2 a second; 40 before this one.
    assert refusal.value.retry_after_s == pytest.approx(20.5)
    assert line.drain_s("system", 9.9) == 1.0
    assert line.drain_s("default", 30.0) == 10.0, "nobody was served for ten seconds: nobody knows"


def test_whoever_was_called_back_counts_for_no_pace() -> None:
    line = WaitQueue(small())
    ticket = enter(line, "default")
    for _ in range(50):
        called = line.next(1.0)
        assert called is ticket
        line.back(ticket, 1.0)
    assert line.drain_s("default", 1.0) == 10.0


def test_time_is_up_after_the_class_says_or_at_the_deadline() -> None:
    line = WaitQueue(small(default=ClassOptions(9, 60.0, NEVER_S)))
    patient = line.enter("default", 0.0, FAR_S)
    hurried = line.enter("default", 0.0, 5.0)
    assert (patient.until_s, hurried.until_s) == (60.0, 5.0)
    assert line.next_s() == 5.0
    assert line.expired(4.9) == []
    assert line.expired(5.0) == [hurried]
    assert line.next_s() == 60.0
    assert line.expired(100.0) == [patient]
    assert line.counts()["default"].expired == 2
    assert len(line) == 0


def test_whose_time_is_up_is_not_called_but_told() -> None:
    line = WaitQueue(small())
    late = line.enter("default", 0.0, 1.0)
    fine = line.enter("default", 0.0, FAR_S)
    assert line.next(2.0) is fine
    assert line.next(2.0) is None
    assert line.expired(2.0) == [late]
    assert line.expired(2.0) == []


def test_one_that_came_back_late_still_expires_once() -> None:
    line = WaitQueue(small())
    ticket = line.enter("default", 0.0, 5.0)
    assert line.next(1.0) is ticket
    assert line.expired(9.0) == []
    line.back(ticket, 9.0)
    assert line.next(9.0) is None
    assert line.expired(9.0) == [ticket]
    assert len(line) == 0


def test_every_fifth_is_one_who_has_waited_for_long() -> None:
    line = WaitQueue(small(default=ClassOptions(9, FAR_S, 30.0)))
    old = [line.enter("default", 0.0, FAR_S) for _ in range(2)]
    for _ in range(20):
        line.enter("interactive", 0.0, FAR_S)
    assert not {line.next(29.9) for _ in range(6)} & set(old)
    assert [line.next(30.0) in old for _ in range(10)] == [*[False] * 4, True] * 2


def test_of_those_who_waited_for_long_the_one_goes_that_is_latest_for_its_class() -> None:
    line = WaitQueue(
        small(bulk=ClassOptions(9, FAR_S, 100.0), default=ClassOptions(9, FAR_S, 10.0))
    )
    bulk = line.enter("bulk", 0.0, FAR_S)
    default = line.enter("default", 101.0, FAR_S)
    for _ in range(20):
        line.enter("interactive", 101.0, FAR_S)
    called = [line.next(120.0) for _ in range(10)]
    assert (called[4], called[9]) == (default, bulk)


def test_however_much_bulk_waits_for_long_most_who_are_called_are_urgent() -> None:
    line = WaitQueue()
    for _ in range(1000):
        line.enter("bulk", 0.0, FAR_S)
    for _ in range(100):
        line.enter("interactive", 200.0, FAR_S)
    called = [line.next(200.5) for _ in range(100)]
    assert sum(one is not None and one.rank == "interactive" for one in called) == 80


def test_nobody_starves_under_urgent_work_that_never_ends() -> None:
    line = WaitQueue()
    bulk = line.enter("bulk", 0.0, FAR_S)
    default = line.enter("default", 0.0, FAR_S)
    served: dict[Ticket, float] = {}
    for second in range(300):
        for _ in range(3):
            line.enter("interactive", float(second), FAR_S)
        line.expired(float(second))
        for _ in range(2):
            ticket = line.next(float(second))
            assert ticket is not None
            served[ticket] = second
    assert 30 <= served[default] <= 34
    assert 120 <= served[bulk] <= 124


def test_new_numbers_count_for_those_who_come() -> None:
    line = WaitQueue(small())
    before = enter(line, "default")
    line.retune(small(default=ClassOptions(1, 7.0, NEVER_S)))
    with pytest.raises(LineFull):
        enter(line, "default")
    line.leave(before)
    assert enter(line, "default").until_s == 7.0
    assert before.until_s == FAR_S


def test_what_nobody_waits_for_any_more_is_not_kept() -> None:
    line = WaitQueue()
    kept = enter(line, "default")
    for _ in range(10_000):
        line.leave(enter(line, "default"))
    sizes = [len(heap) for heap in (line._ends, line._classes["default"].heap)]
    assert max(sizes) <= 2 * len(line) + 65
    assert line.next(0.0) is kept


def test_every_class_has_its_own_numbers() -> None:
    assert DEFAULTS.keys() == set(PRIORITIES)
    places = [DEFAULTS[rank].places for rank in PRIORITIES]
    assert places == sorted(places)


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "enter", "next", "next", "back", "leave", "expire"]),
        st.sampled_from(PRIORITIES),
        st.floats(0, 8),
    ),
    max_size=120,
)


def plain_next(
    standing: list[Ticket], now_s: float, options: QueueOptions, passed: int
) -> tuple[Ticket | None, int]:
    """Return who is next, and how often lifted ones were passed over: worked out anew from all who stand."""
    ready = sorted(
        (one for one in standing if one.until_s > now_s),
        key=lambda one: (PRIORITIES.index(one.rank), one.number),
    )
    heads = [one for at, one in enumerate(ready) if one.rank not in {x.rank for x in ready[:at]}]
    late = [
        ((now_s - one.entered_s) / options.classes[one.rank].lift_s, at, one)
        for at, one in enumerate(heads)
        if at > 0
    ]
    late = [entry for entry in late if entry[0] >= 1]
    if not late:
        return (heads[0] if heads else None), passed
    if passed + 1 < 5:
        return heads[0], passed + 1
    return max(late, key=lambda entry: (entry[0], entry[1]))[2], 0


@settings(max_examples=example_count(300), deadline=None)
@given(acts=ACTS, seed=st.integers(0, 2**16))
def test_it_does_what_a_plain_list_does(acts: list[tuple[str, Priority, float]], seed: int) -> None:
    options = small(
        system=ClassOptions(2, 6.0, NEVER_S),
        interactive=ClassOptions(3, 9.0, 4.0),
        default=ClassOptions(5, 20.0, 6.0),
        bulk=ClassOptions(6, 50.0, 10.0),
    )
    line, chance, now_s = WaitQueue(options), random.Random(seed), 0.0
    standing: list[Ticket] = []
    called: list[Ticket] = []
    gone: list[Ticket] = []
    passed = 0
    for act, rank, pause_s in acts:
        now_s += pause_s * (chance.random() < 0.5)
        if act == "enter":
            waiting = [one for one in standing if one.rank == rank and one.until_s > now_s]
            if len(waiting) >= options.classes[rank].places:
                with pytest.raises(LineFull):
                    line.enter(rank, now_s, FAR_S)
            else:
                standing.append(line.enter(rank, now_s, now_s + chance.choice([3.0, FAR_S])))
        elif act == "next":
            wanted, passed = plain_next(standing, now_s, options, passed)
            got = line.next(now_s)
            assert got is wanted
            # Whoever stood before it and was late is told of by `expired` from now on.
            standing = [one for one in standing if one is not got]
            called += [] if got is None else [got]
        elif act == "back" and called:
            standing.append(called.pop(chance.randrange(len(called))))
            line.back(standing[-1], now_s)
        elif act == "leave" and standing:
            leaver = chance.choice(standing)
            if leaver.until_s > now_s:
                line.leave(leaver)
                standing.remove(leaver)
        elif act == "expire":
            late = sorted(
                (one for one in standing if one.until_s <= now_s), key=lambda one: one.number
            )
            assert line.expired(now_s) == late
            gone += late
            standing = [one for one in standing if one not in late]
    counts = line.counts()
    assert sum(each.expired for each in counts.values()) >= len(gone)
    assert sum(each.entered for each in counts.values()) == sum(
        each.waiting + each.served + each.expired + each.left for each in counts.values()
    )
