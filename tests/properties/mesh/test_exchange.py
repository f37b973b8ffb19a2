"""Exchanges: any cut, any order, any garbage ends in `ExchangeError` or moves on, and is bounded."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.swim.messages import Claim
from smg_mesh.sync.exchange.exchange_machine import (
    NOVEL_MAX,
    ROWS_MAX,
    SLICE_ROWS_MAX,
    Exchange,
    ExchangeError,
    Frame,
    Novel,
    Opening,
    Rows,
)
from support.state.exchanges import claims, converse, opening

names = st.sampled_from(["a", "b", "c", "", "UPPER", "x" * 64])
greetings = st.builds(
    Opening,
    name=names,
    boot=st.integers(-1, 1 << 64),
    label=st.sampled_from(["test", "test", "test", "other", ""]),
    digest=st.sampled_from([bytes(16), b"x" * 16, b""]),
    full=st.booleans(),
    wire_version=st.sampled_from([1, 1, 1, 0, 2]),
)
sizes = st.sampled_from([0, 1, 2, SLICE_ROWS_MAX, SLICE_ROWS_MAX + 1])
rows = st.builds(lambda count, last: Rows(tuple(claims(count)), last), sizes, st.booleans())
frames: st.SearchStrategy[Frame] = st.one_of(
    greetings, st.just(opening("b", full=True)), rows, st.builds(Novel, ignorable=st.booleans())
)


@given(st.lists(frames, max_size=40), st.booleans(), st.booleans(), st.sampled_from([0, 1, 2500]))
def test_whatever_comes_is_refused_or_moves_on(
    said: list[Frame], opener: bool, full: bool, own: int
) -> None:
    table = claims(own)
    exchange = Exchange(opening("a", full=full), lambda: table, opener=opener)
    sent = list(exchange.begin())
    learned = 0
    failure: ExchangeError | None = None
    for frame in said:
        was_done = exchange.done
        try:
            step = exchange.receive(frame)
        except ExchangeError as error:
            failure = error
            break
        assert not was_done, "nothing is taken after the end"
        assert step.learned == (frame.claims if isinstance(frame, Rows) else ())
        assert step.learned == () or step.peer is not None, "only of those who said who they are"
        assert step.done == exchange.done
        learned += len(step.learned)
        sent += step.send
    if failure is not None:
        assert failure.reason in ("order", "version", "label", "wire", "size")
        assert not exchange.done
    assert learned <= ROWS_MAX
    assert sum(isinstance(frame, Opening) for frame in sent) <= 1
    told = [claim for frame in sent if isinstance(frame, Rows) for claim in frame.claims]
    assert told == table[: len(told)], "no row is sent twice, none is left out"
    assert sum(frame.last for frame in sent if isinstance(frame, Rows)) <= 1


@given(
    st.sampled_from([0, 1, 1000, 2500]),
    st.sampled_from([0, 1, 1000, 2500]),
    st.integers(0, 9),
)
def test_a_cut_after_any_frame_leaves_rows_that_are_true(left: int, right: int, cut: int) -> None:
    mine, theirs = claims(left, "l"), claims(right, "r")
    opener = Exchange(opening("a", digest=b"a" * 16), lambda: mine, opener=True)
    answerer = Exchange(opening("b", digest=b"b" * 16), lambda: theirs, opener=False)
    talk = converse(opener, answerer, frames_max=cut)
    assert talk.learned_by_answerer == mine[: len(talk.learned_by_answerer)]
    assert talk.learned_by_opener == theirs[: len(talk.learned_by_opener)]
    for exchange, learned, known in (
        (opener, talk.learned_by_opener, theirs),
        (answerer, talk.learned_by_answerer, mine),
    ):
        assert not exchange.done or learned == known


@given(
    st.sampled_from([0, 1, 1000, 3500]),
    st.sampled_from([0, 1, 1000, 3500]),
    st.lists(st.booleans(), max_size=40),
    st.lists(st.integers(0, 20), max_size=NOVEL_MAX),
)
def test_any_timing_and_any_skipped_frames_end_with_all_rows_on_both_sides(
    left: int, right: int, who: list[bool], skipped: list[int]
) -> None:
    mine, theirs = claims(left, "l"), claims(right, "r")
    sides = (
        Exchange(opening("a", digest=b"a" * 16), lambda: mine, opener=True),
        Exchange(opening("b", digest=b"b" * 16), lambda: theirs, opener=False),
    )
    inbox: tuple[deque[Frame], deque[Frame]] = (deque(), deque(sides[0].begin()))
    learned: tuple[list[Claim], list[Claim]] = ([], [])
    choices = iter(who)
    turn = 0
    while inbox[0] or inbox[1]:
        preferred = int(next(choices, True))
        side = preferred if inbox[preferred] else 1 - preferred
        turn += 1
        if turn in skipped:
            assert sides[side].receive(Novel(ignorable=True)).send == ()
        step = sides[side].receive(inbox[side].popleft())
        learned[side].extend(step.learned)
        inbox[1 - side].extend(step.send)
        unread = sum(isinstance(frame, Rows) for frame in (*inbox[0], *inbox[1]))
        assert unread <= 1 or min(len(inbox[0]), len(inbox[1])) == 0, (
            "only one side waits to be read"
        )
    assert learned == (theirs, mine)
    assert sides[0].done
    assert sides[1].done
