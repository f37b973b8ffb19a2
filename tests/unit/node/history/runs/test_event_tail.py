import pytest

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs.event_tail import EVENT_BYTES, Tail


def told(first: int, last: int, length: int = 10) -> list[NumberedEvent]:
    return [NumberedEvent(number, "response.x", b"x" * length) for number in range(first, last + 1)]


def tail(kept_bytes_max: int = 10_000) -> Tail:
    return Tail(kept_bytes_max=kept_bytes_max)


def test_an_empty_one_has_nothing_to_write_and_nothing_to_tell() -> None:
    one = tail()
    assert (one.last, one.durable, one.new_bytes) == (-1, -1, 0)
    assert one.pieces(bytes_max=100, pieces_max=2) == []
    assert one.since(-1, upto=-1) == []


def test_what_is_said_has_to_follow_what_was_said() -> None:
    one = tail()
    one.say(told(0, 2))
    with pytest.raises(AssertionError):
        one.say(told(4, 5))


def test_what_nobody_follows_is_forgotten_once_it_is_written() -> None:
    one = tail()
    assert one.say(told(0, 9)) == 10 * (10 + EVENT_BYTES)
    assert one.written(4) == 5 * (10 + EVENT_BYTES)
    assert (one.durable, one.last, one.kept_bytes) == (4, 9, 0)
    assert one.since(3, upto=9) is None
    assert one.since(4, upto=9) == told(5, 9)
    assert one.new_bytes == 5 * (10 + EVENT_BYTES)


def test_what_somebody_has_not_had_stays_until_he_had_it_or_leaves() -> None:
    one = tail()
    slow, quick = one.join(-1), one.join(-1)
    one.say(told(0, 9))
    one.written(9)
    quick.at = 9
    assert one.since(-1, upto=9) == told(0, 9)
    slow.at = 4
    one.leave(quick)
    assert one.since(3, upto=9) is None
    assert one.since(4, upto=9) == told(5, 9)
    one.leave(slow)
    assert one.since(4, upto=9) is None
    assert one.since(9, upto=9) == []
    assert (one.kept_bytes, one.last, one.durable) == (0, 9, 9)


def test_who_is_far_behind_does_not_hold_more_than_there_is_room_for() -> None:
    one = tail(kept_bytes_max=5 * (10 + EVENT_BYTES))
    one.join(-1)
    for number in range(100):
        one.say(told(number, number))
        one.written(number)
        assert one.kept_bytes <= 5 * (10 + EVENT_BYTES)
    assert one.since(0, upto=99) is None
    assert one.since(94, upto=99) == told(95, 99)


def test_what_is_not_written_stays_however_much_it_is() -> None:
    one = tail(kept_bytes_max=0)
    one.say(told(0, 99))
    assert one.since(-1, upto=99) == told(0, 99)
    assert one.since(-1, upto=-1) == []


def test_pieces_are_as_large_as_they_may_be_and_as_many() -> None:
    one = tail()
    one.say(told(0, 9, length=10))
    pieces = one.pieces(bytes_max=35, pieces_max=2)
    assert [[event.sequence for event in piece] for piece in pieces] == [[0, 1, 2], [3, 4, 5]]
    one.written(5)
    one.say(told(10, 10, length=100))
    pieces = one.pieces(bytes_max=35, pieces_max=9)
    assert [[event.sequence for event in piece] for piece in pieces] == [[6, 7, 8], [9], [10]]


def test_what_was_not_written_can_be_taken_back() -> None:
    one = tail()
    one.join(-1)
    one.say(told(0, 9))
    one.written(3)
    assert one.take_back() == 6 * (10 + EVENT_BYTES)
    assert (one.last, one.new_bytes) == (3, 0)
    assert one.since(-1, upto=9) == told(0, 3)
    assert one.take_back() == 0


def test_only_who_waits_for_the_log_hurries_it() -> None:
    one = tail()
    assert not one.waited_for
    at_once = one.join(-1, waits=False)
    assert not one.waited_for
    waiting = one.join(-1)
    assert one.waited_for
    one.leave(waiting)
    one.leave(at_once)
    assert not one.waited_for
