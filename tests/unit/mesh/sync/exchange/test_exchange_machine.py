"""A conversation between two nodes, frame by frame."""

import pytest

from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.sync.exchange.exchange_machine import (
    NOVEL_MAX,
    ROWS_MAX,
    SLICE_ROWS_MAX,
    Exchange,
    ExchangeError,
    Frame,
    Novel,
    Rows,
)
from support.state.exchanges import claims, converse, opening


def pair(left: list[Claim], right: list[Claim], **said: object) -> tuple[Exchange, Exchange]:
    return (
        Exchange(opening("a", digest=b"a" * 16, **said), lambda: left, opener=True),
        Exchange(opening("b", digest=b"b" * 16), lambda: right, opener=False),
    )


@pytest.mark.parametrize("left", [0, 1, 999, 1000, 1001, 2000, 4500])
@pytest.mark.parametrize("right", [0, 1, 1000, 3001])
def test_both_sides_learn_every_row_of_the_other(left: int, right: int) -> None:
    mine, theirs = claims(left, "l"), claims(right, "r")
    opener, answerer = pair(mine, theirs)
    talk = converse(opener, answerer)
    assert talk.learned_by_answerer == mine
    assert talk.learned_by_opener == theirs
    assert opener.done
    assert answerer.done


def test_equal_digests_end_it_after_the_greetings() -> None:
    opener = Exchange(opening("a"), lambda: claims(3), opener=True)
    answerer = Exchange(opening("b"), lambda: claims(5), opener=False)
    talk = converse(opener, answerer)
    assert talk.frames == [("opener", opening("a")), ("answerer", opening("b"))]
    assert opener.done
    assert answerer.done


def test_only_the_members_part_of_the_digest_decides_about_rows() -> None:
    opener = Exchange(opening("a", digest=b"m" * 8 + b"1" * 8), lambda: claims(3), opener=True)
    answerer = Exchange(opening("b", digest=b"m" * 8 + b"2" * 8), lambda: claims(5), opener=False)
    assert len(converse(opener, answerer).frames) == 2


@pytest.mark.parametrize(("left", "right"), [(True, False), (False, True), (True, True)])
def test_either_side_may_want_all_rows_although_the_digests_are_equal(
    left: bool, right: bool
) -> None:
    opener = Exchange(opening("a", full=left), lambda: claims(3, "l"), opener=True)
    answerer = Exchange(opening("b", full=right), lambda: claims(5, "r"), opener=False)
    talk = converse(opener, answerer)
    assert talk.learned_by_answerer == claims(3, "l")
    assert talk.learned_by_opener == claims(5, "r")


def test_a_node_that_meets_itself_says_nothing_more() -> None:
    opener = Exchange(opening("a", full=True), lambda: claims(3), opener=True)
    answerer = Exchange(opening("a", full=True), lambda: claims(3), opener=False)
    talk = converse(opener, answerer)
    assert talk.learned_by_opener == talk.learned_by_answerer == []
    assert opener.done
    assert opener.peer == opening("a", full=True)


def test_two_lives_of_one_name_do_tell_each_other() -> None:
    opener = Exchange(opening("a", boot=1, full=True), lambda: claims(1), opener=True)
    answerer = Exchange(opening("a", boot=2), lambda: claims(2), opener=False)
    assert converse(opener, answerer).learned_by_opener == claims(2)


def test_the_sides_take_turns_until_one_has_said_all() -> None:
    talk = converse(*pair(claims(3500, "l"), claims(1500, "r")))
    kinds = [
        (side, len(frame.claims) if isinstance(frame, Rows) else "opening")
        for side, frame in talk.frames
    ]
    assert kinds == [
        ("opener", "opening"),
        ("answerer", "opening"),
        ("answerer", 1000),
        ("opener", 1000),
        ("answerer", 500),
        ("opener", 1000),
        ("opener", 1000),
        ("opener", 500),
    ]


def test_rows_are_what_is_known_when_they_are_sent() -> None:
    table = claims(1)
    opener = Exchange(opening("a", full=True), lambda: table, opener=True)
    (greeting,) = opener.begin()
    assert greeting == opening("a", full=True)
    opener.receive(opening("b"))
    table.append(Claim("late", 1, 0, Rank.ALIVE, Address("10.0.0.9", 7946), b""))
    step = opener.receive(Rows((), last=True))
    assert step.send == (Rows(tuple(table), last=True),)
    assert step.done


def test_a_table_too_large_leaves_out_the_gone_first() -> None:
    gone = [Claim(f"g{number}", 1, 0, Rank.DEAD) for number in range(500)]
    living = claims(ROWS_MAX - 100)
    talk = converse(*pair([*gone, *living], []))
    assert len(talk.learned_by_answerer) == ROWS_MAX
    assert talk.learned_by_answerer[: len(living)] == living


def test_the_answerer_is_silent_until_it_is_spoken_to() -> None:
    assert Exchange(opening("b"), list, opener=False).begin() == []


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (opening("b", label="other"), "label"),
        (opening("b", wire_version=2), "version"),
        (opening("b", name="Not A Name"), "wire"),
        (opening("b", name=""), "wire"),
        (opening("b", name="x" * 64), "wire"),
        (opening("b", boot=-1), "wire"),
        (opening("b", boot=1 << 64), "wire"),
        (opening("b", digest=b"short"), "wire"),
        (Rows((), last=True), "order"),
        (Novel(ignorable=False), "version"),
    ],
)
@pytest.mark.parametrize("opener", [True, False])
def test_a_bad_first_frame_ends_it(said: Frame, reason: str, opener: bool) -> None:
    exchange = Exchange(opening("a"), lambda: claims(1), opener=opener)
    with pytest.raises(ExchangeError) as raised:
        exchange.receive(said)
    assert raised.value.reason == reason
    assert not exchange.done
    with pytest.raises(ExchangeError, match="after the end"):
        exchange.receive(opening("b"))


def opened() -> Exchange:
    exchange = Exchange(opening("a"), lambda: claims(1), opener=False)
    exchange.receive(opening("b", full=True))
    return exchange


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (opening("b"), "order"),
        (Rows((), last=False), "size"),
        (Rows(tuple(claims(SLICE_ROWS_MAX + 1)), last=True), "size"),
        (Novel(ignorable=False), "version"),
    ],
)
def test_a_bad_later_frame_ends_it(said: Frame, reason: str) -> None:
    with pytest.raises(ExchangeError) as raised:
        opened().receive(said)
    assert raised.value.reason == reason


def test_rows_after_the_last_rows_end_it() -> None:
    exchange = Exchange(opening("a"), lambda: claims(3000), opener=True)
    exchange.receive(opening("b", full=True))
    assert exchange.receive(Rows(tuple(claims(1)), last=True)).done
    with pytest.raises(ExchangeError, match="after the end"):
        exchange.receive(Rows(tuple(claims(1)), last=True))


def test_a_side_that_has_said_its_last_is_not_heard_again() -> None:
    exchange = Exchange(opening("a"), lambda: claims(1), opener=False)
    exchange.receive(opening("b", full=True))
    assert exchange.receive(Rows(tuple(claims(1)), last=True)).done


def test_endless_rows_end_it() -> None:
    exchange = opened()
    slice_of_many = Rows(tuple(claims(SLICE_ROWS_MAX)), last=False)
    for _ in range(ROWS_MAX // SLICE_ROWS_MAX):
        assert exchange.receive(slice_of_many).learned == slice_of_many.claims
    with pytest.raises(ExchangeError) as raised:
        exchange.receive(slice_of_many)
    assert raised.value.reason == "size"


def test_frames_of_a_newer_version_are_skipped_up_to_a_limit() -> None:
    exchange = opened()
    for _ in range(NOVEL_MAX):
        assert exchange.receive(Novel(ignorable=True)).send == ()
    with pytest.raises(ExchangeError) as raised:
        exchange.receive(Novel(ignorable=True))
    assert raised.value.reason == "size"


def test_a_frame_of_a_newer_version_may_come_before_the_greeting() -> None:
    exchange = Exchange(opening("a"), lambda: claims(1), opener=False)
    assert exchange.receive(Novel(ignorable=True)).peer is None
    assert exchange.receive(opening("b")).peer == opening("b")
