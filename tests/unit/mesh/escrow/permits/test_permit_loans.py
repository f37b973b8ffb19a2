"""Loans between two names, and permits by what was lent: values, and what a process knows of those before it."""

from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.escrow.permits.concurrency_permits import (
    OVER_MS,
    PLACES_MAX,
    Ignorance,
    Permits,
    permits_of,
)
from smg_mesh.escrow.permits.permit_loans import (
    LENT,
    WHOLE_KEY,
    Borrowed,
    Lent,
    Loans,
    row_of,
    without_lent,
)
from support.rights.rights_world import Defined

OPEN = Limit("#concurrent/0", "concurrent", 8, 0, mode="strict")
KEY = OPEN.key


def roster(names: str, places: tuple[tuple[int, int], ...] = ()) -> Roster:
    return Roster(bytes(16), 1, tuple(names), (len(names),) * len(names), places=places)


def permits(names: str = "abcd", known: Roster | None = None) -> Permits:
    made = Permits(Life("a", 1), Defined(OPEN), now_ms=0, roster=known)
    made.divide(roster(names), len(names))
    return made


def test_a_level_is_believed_under_the_number_that_was_given_last() -> None:
    one = Lent()
    assert not one.hear(7, 0, 0, now_ms=1)
    one.give(5, revision=9)
    assert (one.level, one.number, one.told) == (5, 1, False)
    assert not one.hear(7, 0, 0, now_ms=2)
    assert one.hear(7, 1, 3, now_ms=3)
    assert not one.hear(7, 1, 4, now_ms=4)
    assert (one.level, one.dirty) == (3, True)
    assert not one.hear(6, 1, 0, now_ms=5)
    assert one.heard_ms == 4


def test_the_first_word_of_a_session_is_the_truth_also_if_it_is_more() -> None:
    one = Lent(level=2)
    assert one.hear(7, 0, 6, now_ms=1)
    assert one.level == 6
    one.take_back()
    assert (one.level, one.number) == (0, 1)
    assert not one.hear(7, 0, 6, now_ms=2)
    assert one.hear(8, 0, 6, now_ms=3)
    assert one.level == 6


def test_a_borrower_goes_by_larger_numbers_only_and_lowers_by_itself() -> None:
    one = Borrowed()
    one.take(2, 5)
    one.owed = 4
    one.lower(2)
    assert (one.level, one.owed) == (3, 2)
    one.take(2, 5)
    one.take(1, 9)
    assert one.level == 3
    one.take(3, 1)
    assert (one.level, one.owed) == (1, 1)


def test_a_larger_life_of_a_lender_begins_a_session() -> None:
    loans = Loans()
    loans.see("b", 5)
    loans.held_from(KEY, "b").take(4, 3)
    loans.see("b", 5)
    assert loans.held[KEY]["b"].number == 4
    loans.see("b", 6)
    assert (loans.held[KEY]["b"].number, loans.held[KEY]["b"].level) == (0, 3)


def test_of_rows_on_disk_the_largest_revision_counts_in_any_order() -> None:
    one, loans = Lent(level=4, revision=12), Loans()
    last = row_of(KEY, "b", one)
    disk = {
        (last.key, last.window): last.total,
        (last.key, 9): 7,
        (f"{LENT}c\x1f{KEY}", 3): 0,
        ("#requests/1000", 77): 5,
    }
    assert not loans.recall(disk)
    assert (loans.lent_of(KEY), loans.lent[KEY]["b"].level, loans.revision) == (4, 4, 12)
    assert Loans().recall({(WHOLE_KEY, 0): 1})
    assert without_lent({**disk, (WHOLE_KEY, 0): 1}) == {("#requests/1000", 77): 5}
    assert without_lent(None) is None
    assert loans.written(Minted(last.key, 13, 4)) is loans.lent[KEY]["b"]
    assert loans.lent[KEY]["b"].written == 13
    assert loans.written(Minted(f"{LENT}x\x1f{KEY}", 1, 1)) is None
    assert {row.key for row in loans.rows()} == {last.key, f"{LENT}c\x1f{KEY}"}


def test_nothing_that_is_something_is_forgotten() -> None:
    loans = Loans()
    loans.lent_to(KEY, "b").level = 1
    loans.lent_to(KEY, "c").dirty = True
    loans.lent_to(KEY, "d")
    loans.held_from(KEY, "b").level = 1
    loans.held_from(KEY, "c")
    loans.forget(quiet_ms=10, now_ms=10)
    assert (len(loans.lent[KEY]), len(loans.held[KEY])) == (3, 2)
    loans.forget(quiet_ms=10, now_ms=11)
    assert (list(loans.lent[KEY]), list(loans.held[KEY])) == (["b", "c"], ["b"])
    loans.lent[KEY]["b"].level = loans.held[KEY]["b"].level = 0
    loans.lent[KEY]["c"].dirty = False
    loans.forget(quiet_ms=10, now_ms=20)
    assert (loans.lent, loans.held) == ({}, {})


def test_there_is_room_for_a_part_less_what_was_lent_and_what_is_held() -> None:
    own = permits()
    share = own.share(OPEN)
    own.loans.lent_to(KEY, "b").level = 1
    borrowed = own.loans.held_from(KEY, "c")
    borrowed.level, borrowed.owed = 5, 2
    own.loans.held_from(KEY, "stranger").level = 9
    own.fit(share)
    assert (share.left, own.room(KEY, fresh=False)) == (4, 6)
    borrowed.stale = True
    own.fit(share)
    assert (share.left, own.room(KEY, fresh=False)) == (1, 6)
    (row,) = own.rows()
    assert (row.standing, row.left, row.amount) == (6, 6, 8)


def test_newcomers_wait_until_no_more_is_open_and_lent_than_there_is_room_for() -> None:
    own = permits()
    share = own.share(OPEN)
    share.spent = 2
    assert own.settled()
    own.divide(roster("abcde"), 5)
    assert own.settled()
    own.divide(roster("abcdefgh"), 8)
    assert not own.settled()
    share.spent = 1
    assert own.settled()
    own.loans.lent_to(KEY, "b").level = 1
    assert not own.settled()
    own.loans.held_from(KEY, "c").level = 1
    assert own.settled()
    own.ignorance = Ignorance(0)
    assert not own.settled()


def test_nobodys_part_grows_before_the_last_answer_on_what_a_leaver_lent_is_over() -> None:
    own = permits("abcd")
    own.divide(roster("abc"), 3)
    assert own.part(KEY) == 2
    own.pass_time(OVER_MS - 1)
    assert own.part(KEY) == 2
    own.pass_time(OVER_MS)
    assert own.part(KEY) == permits_of(8, roster("abc"), 3, "a") == 3


def test_a_life_that_begins_anew_keeps_the_places_of_before_in_mind() -> None:
    own = permits("abcd")
    kept = own.places()
    assert kept == ((0, 4),)
    later = permits("abc", roster("abc", kept))
    assert later.part(KEY) == 2
    later.pass_time(OVER_MS)
    assert later.part(KEY) == 3
    told = permits("abc")
    told.spread(5)
    assert told.part(KEY) == 1
    told.spread(2)
    assert told.part(KEY) == 1


def test_many_places_become_one_that_allows_less_than_any() -> None:
    names = "abcdefghijklmnopqrstuvwxyz"
    own = permits(names)
    for count in range(len(names), 2, -1):
        own.divide(roster(names[:count]), count)
    assert len(own.places()) <= PLACES_MAX
    assert own.part(KEY) == 0
    own.divide(roster("a"), 1)
    assert own.part(KEY) == 8


def test_who_does_not_know_what_was_lent_has_a_part_by_the_mode() -> None:
    for mode, silent, alive, late, part in (
        ("strict", True, False, True, 0),
        ("strict", False, False, False, 2),
        ("balanced", True, True, True, 0),
        ("balanced", True, False, False, 2),
        ("available", True, True, False, 0),
        ("available", True, True, True, 2),
    ):
        limit = Limit(KEY, "concurrent", 8, 0, mode=mode)  # type: ignore[arg-type]  # a mode
        own = Permits(Life("a", 1), Defined(limit), now_ms=0)
        own.ignorance = Ignorance(0, silent, silent_alive=alive, late=late)
        own.divide(roster("abcd"), 4)
        assert own.part(KEY) == part, (mode, silent, alive, late)
        own.pass_time(OVER_MS)
        assert own.part(KEY) == 2
        assert own.ignorance is None


def test_a_life_in_the_same_process_goes_on_with_what_was_lent_and_held() -> None:
    own = permits()
    own.loans.lent_to(KEY, "b").give(1, revision=1)
    own.loans.held_from(KEY, "c").take(3, 4)
    share = own.share(OPEN)
    later = Permits(Life("a", 2), Defined(OPEN), now_ms=5)
    later.inherit(own)
    assert (later.loans.lent_of(KEY), later.loans.held[KEY]["c"].number) == (1, 0)
    later.divide(roster("abcd"), 4)
    assert later.share(OPEN) is share
    assert share.left == 2 - 1 + 4
    own.retire()
    assert own.rows() == []
