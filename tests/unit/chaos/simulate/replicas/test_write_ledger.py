from smg_chaos.simulate.hosts.state_write import Write
from smg_chaos.simulate.replicas.write_ledger import Held, Ledger

CELL = ("settings", "k")


def write(hlc: int, owner: str = "a", value: bytes | None = b"v") -> Write:
    return Write(CELL, owner, hlc, 0, value, hlc)


def ledger_of(*holders: str) -> Ledger:
    ledger = Ledger()
    for number, label in enumerate(holders):
        ledger.began(number, Held(label))
    return ledger


def acknowledged(ledger: Ledger, number: int, one: Write) -> None:
    ledger.wrote(number, one)
    ledger.holds(number, one)


def test_what_was_acknowledged_is_expected_and_the_larger_one_counts() -> None:
    ledger = ledger_of("a", "b")
    acknowledged(ledger, 0, write(1))
    acknowledged(ledger, 1, write(2, "b"))
    assert ledger.expected() == {CELL: write(2, "b")}
    acknowledged(ledger, 0, write(2, "a"))
    assert ledger.expected() == {CELL: write(2, "b")}


def test_a_write_is_lost_with_its_only_holder_and_not_before() -> None:
    ledger = ledger_of("a", "b")
    acknowledged(ledger, 0, write(1))
    ledger.holds(1, write(1))
    acknowledged(ledger, 0, write(5))
    ledger.ended(0)
    assert ledger.expected() == {CELL: write(1)}
    assert ledger.lost == {CELL: 1}
    ledger.ended(1)
    assert ledger.expected() == {}
    assert ledger.lost == {CELL: 2}


def test_a_write_that_another_holds_survives_its_writer() -> None:
    ledger = ledger_of("a", "b")
    acknowledged(ledger, 0, write(1))
    ledger.holds(1, write(1))
    ledger.ended(0)
    assert ledger.expected() == {CELL: write(1)}
    assert ledger.lost == {}


def test_what_was_lost_counts_again_when_it_comes_back() -> None:
    ledger = ledger_of("a")
    acknowledged(ledger, 0, write(3))
    ledger.ended(0)
    assert ledger.expected() == {}
    ledger.began(7, Held("a", {CELL: write(3)}))
    assert ledger.expected() == {CELL: write(3)}


def test_copies_are_known_by_time_and_value_whoever_owns_them_now() -> None:
    ledger = ledger_of("a")
    acknowledged(ledger, 0, write(3))
    assert ledger.known(CELL, 3, b"v") == write(3)
    assert ledger.known(CELL, 3, b"w") is None
    assert ledger.known(CELL, 4, b"v") is None


def test_what_its_owner_took_away_for_good_is_not_expected_until_it_is_written_again() -> None:
    ledger = ledger_of("a")
    acknowledged(ledger, 0, write(3))
    ledger.retired(CELL)
    assert ledger.expected() == {}
    assert ledger.is_retired(CELL)
    acknowledged(ledger, 0, write(4))
    assert ledger.expected() == {CELL: write(4)}


def test_a_write_that_nobody_else_held_blurs_its_cell_when_its_writer_ends() -> None:
    ledger = ledger_of("a", "b")
    acknowledged(ledger, 0, write(3))
    acknowledged(ledger, 1, write(4, "b"))
    ledger.holds(0, write(4, "b"))
    ledger.ended(1)
    assert ledger.blurred == {}
    ledger.ended(0)
    assert ledger.blurred == {CELL: None}


def test_a_write_is_void_once_its_writer_wrote_again_in_a_later_life() -> None:
    ledger = ledger_of("a")
    first = Write(CELL, "a", 9, 0, b"v", 0, boot=1)
    acknowledged(ledger, 0, first)
    assert not ledger.is_void(first)
    acknowledged(ledger, 0, Write(CELL, "a", 5, 0, b"w", 0, boot=2))
    assert ledger.is_void(first)


def test_entries_of_a_removed_worker_are_beaten_and_what_took_them_away_is_known() -> None:
    ledger = ledger_of("a")
    source = Write(("workers", "w/api"), "a", 3, 0, b"v", 0)
    acknowledged(ledger, 0, source)
    assert not ledger.is_beaten(source)
    acknowledged(ledger, 0, Write(("workers", "w"), "a", 4, 0, None, 0))
    assert ledger.is_beaten(source)
    taken = ledger.taken_away(source.cell, 4, "a")
    assert taken is not None
    assert (taken.hlc, taken.value) == (4, None)
    assert ledger.taken_away(source.cell, 6, "a") is None


def test_a_write_that_was_dated_again_is_the_same_word_at_an_earlier_time() -> None:
    ledger = ledger_of("a")
    acknowledged(ledger, 0, write(9))
    again = ledger.dated_again(CELL, 4, "a", b"v")
    assert again is not None
    assert (again.hlc, again.value) == (4, b"v")
    assert ledger.dated_again(CELL, 4, "b", b"v") is None
    assert ledger.dated_again(CELL, 10, "a", b"v") is None


def test_what_was_dated_again_can_be_taken_away_like_any_word() -> None:
    ledger = ledger_of("a")
    acknowledged(ledger, 0, write(9))
    assert ledger.taken_away(CELL, 5, "a") is None
    assert ledger.dated_again(CELL, 4, "a", b"v") is not None
    taken = ledger.taken_away(CELL, 5, "a")
    assert taken is not None
    assert (taken.hlc, taken.value) == (5, None)
