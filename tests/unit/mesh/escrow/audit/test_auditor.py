from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from smg_mesh.escrow.audit.auditor import add_up, audit, overspent
from smg_mesh.escrow.book_rows import Held, Minting, Row

KEY = "k#requests/1000"


@dataclass
class Book:
    """Three nodes of a limit of 100, of which 10 stand with each; a owns the other 70. All adds up."""

    a: Held = field(
        default_factory=lambda: held("a", given=((5, 20),), returned=(), spent=25, left=5)
    )
    b: Held = field(
        default_factory=lambda: held("b", given=((5, 15),), returned=((5, 5),), spent=20, left=0)
    )
    c: Held = field(default_factory=lambda: held("c", given=(), returned=(), spent=4, left=6))
    owner: Minting = field(
        default_factory=lambda: Minting(
            KEY, 7, "a", 1, 5, 100, 70, 0, (("a", 1, 20, 0), ("b", 1, 20, 3), ("c", 1, 9, 0)), 24
        )
    )

    def rows(self) -> list[Row]:
        return [self.a, self.b, self.c, self.owner]


def held(
    name: str,
    *,
    given: tuple[tuple[int, int], ...],
    returned: tuple[tuple[int, int], ...],
    spent: int,
    left: int,
) -> Held:
    return Held(KEY, 7, name, 1, 100, 10, 0, given, returned, 0, spent, 0, left)


def test_a_book_that_is_right_has_no_faults() -> None:
    book = Book()
    assert audit(book.rows()) == []
    (one,) = add_up(book.rows())
    assert (one.spent, one.shares, one.pools) == (49, 11, 24)
    # 5 to b and 9 to c are on their way, and so are 2 of the 5 that b gave back.
    assert one.in_flight == 16
    assert one.total == 100


def test_the_order_of_rows_does_not_matter_and_windows_are_kept_apart() -> None:
    book = Book()
    other = replace(book.c, window=8)
    assert audit([other, *reversed(book.rows())]) == []
    assert [one.place.window for one in add_up([other, *book.rows()])] == [7, 8]


def test_a_life_that_is_gone_counts_with_its_last_row_and_a_new_one_has_its_own() -> None:
    book = Book()
    again = replace(book.c, boot=2, standing=0, spent=0, left=0)
    assert audit([*book.rows(), again]) == []
    spends = replace(book.c, boot=2)  # what stands with the name twice in one window
    assert [fault.what for fault in audit([*book.rows(), spends])] == ["there is 110 of 100"]


@pytest.mark.parametrize(
    ("row", "changes", "what"),
    [
        ("a", {"spent": 26}, "a has 31 of 30"),
        ("a", {"left": 4}, "a has 29 of 30"),
        ("b", {"returned": ((5, 6),)}, "b has 26 of 25"),
        ("a", {"given": ((5, 21),), "left": 6}, "a was given 21 under 5, and its owner 20"),
        ("a", {"given": ((6, 20),)}, "a was given 20 under 6, and its owner 0"),
        ("b", {"returned": ((5, 2),), "left": 3}, "b returned 2, its owner got 3"),
        ("owner", {"left": 25}, "a gave 71 of 70"),
        ("owner", {"minted": 71, "left": 25}, "there is 101 of 100"),
        ("c", {"standing": 11, "left": 7}, "there is 101 of 100"),
    ],
)
def test_whatever_is_wrong_is_found(row: str, changes: dict[str, object], what: str) -> None:
    book = Book()
    setattr(book, row, replace(getattr(book, row), **changes))
    faults = audit(book.rows())
    assert what in [fault.what for fault in faults]
    assert {fault.place for fault in faults} == {(KEY, 7)}


def test_what_is_borrowed_and_what_is_owed_may_go_beyond() -> None:
    book = Book()
    book.c = replace(book.c, borrowed=20, left=26)
    book.a = replace(book.a, spent=125, owed=100)
    assert audit(book.rows()) == []
    assert overspent(book.rows()) == []


def test_what_lapsed_may_be_minted_once() -> None:
    book = Book()
    book.c = replace(book.c, lapsed=6, left=0)
    book.owner = replace(book.owner, minted=76, left=30)
    assert audit(book.rows()) == []
    book.owner = replace(book.owner, minted=77, left=31)
    assert [fault.what for fault in audit(book.rows())] == ["there is 101 of 100"]


def test_rows_collected_one_after_the_other_show_what_was_spent_at_least() -> None:
    book = Book()
    # c was read before it got what the owner had given, and the owner after.
    book.c = replace(book.c, given=(), spent=4)
    assert overspent(book.rows()) == []
    book.a = replace(book.a, spent=76, given=((5, 71),))
    book.b = replace(book.b, spent=21, given=((5, 16),))
    (fault,) = overspent(book.rows())
    assert fault.what == "spent 101 of 100"
    assert fault.rows == (book.a, book.b, book.c, book.owner)
