"""A conversation about pieces of replicated state: what is exchanged, and what is not."""

from collections.abc import Callable

import pytest

from smg_mesh.sync.exchange.exchange_frames import (
    Frame,
    Holdings,
    Request,
    Update,
)
from smg_mesh.sync.exchange.exchange_machine import Exchange, Opening, Rows
from smg_mesh.sync.exchange.exchange_opener import AGAIN_MAX
from smg_mesh.sync.exchange.piece_interface import REGISTERS
from support.state.exchanges import claims, converse, kinds, opening, side, sides, talk_over
from support.state.fake_pieces import FakePieces, names, union

# ── What is exchanged ────────────────────────────────────────────────────────


def test_both_sides_hold_the_same_afterwards() -> None:
    mine, theirs = FakePieces(*names(5), prefix="a"), FakePieces(*names(9)[3:], prefix="b")
    both = union(mine, theirs)
    talk_over(mine, theirs)
    assert mine.documents() == theirs.documents() == both
    assert mine.digest() == theirs.digest()


def test_a_conversation_is_four_turns_and_a_word_of_thanks() -> None:
    mine, theirs = FakePieces("settings/1", prefix="a"), FakePieces("settings/1", prefix="b")
    assert kinds(talk_over(mine, theirs)) == [
        *("o:Opening", "a:Opening", "a:Holdings", "o:Request"),
        *("a:Update", "o:Update", "o:Done"),
    ]


def test_what_is_equal_is_neither_asked_for_nor_built() -> None:
    mine, theirs = FakePieces(*names(40)), FakePieces(*names(40))
    theirs.put("settings/7", "k0", b"later", version=2)
    said = talk_over(mine, theirs)
    assert mine.merged == [("b", "settings/7", len(theirs.missing("settings/7", 0, b"\x80")))]
    assert theirs.merged == []
    assert theirs.built[:-1] == ["settings/7"]
    assert kinds(said)[-2:] == ["a:Update", "o:Done"], "nothing is owed to who has all"


def test_equal_digests_end_it_after_the_greetings() -> None:
    assert kinds(talk_over(FakePieces(*names(3)), FakePieces(*names(3)))) == [
        "o:Opening",
        "a:Opening",
    ]


def test_an_empty_side_gets_everything_and_gives_everything() -> None:
    for mine, theirs in (
        (FakePieces(), FakePieces(*names(20), keys=3)),
        (FakePieces(*names(20), keys=3), FakePieces()),
    ):
        both = union(mine, theirs)
        talk_over(mine, theirs)
        assert mine.documents() == theirs.documents() == both


def test_who_holds_nothing_asks_nothing_of_who_holds_nothing() -> None:
    assert kinds(talk_over(FakePieces(), FakePieces(), full=True))[-4:] == [
        *("a:Holdings", "o:Request", "a:Update", "o:Done")
    ], "but for the registers, if it wants everything"


def test_rows_come_first_and_all_of_them() -> None:
    mine, theirs = FakePieces(*names(2)), FakePieces(*names(3))
    opener = side("a", mine, opener=True, rows=claims(1500, "l"))
    answerer = side("b", theirs, opener=False, rows=claims(2500, "r"))
    said = converse(opener, answerer)
    assert said.learned_by_answerer == claims(1500, "l")
    assert said.learned_by_opener == claims(2500, "r")
    assert mine.documents() == theirs.documents()
    last_row = max(at for at, (_, frame) in enumerate(said.frames) if isinstance(frame, Rows))
    assert not any(
        isinstance(frame, Holdings | Request | Update) for _, frame in said.frames[:last_row]
    )


@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 3000), (3000, 1), (2000, 2000)])
def test_rows_alone_still_end_it_where_the_state_is_equal(left: int, right: int) -> None:
    opener = side("a", FakePieces(*names(2)), opener=True, rows=claims(left))
    answerer = side("b", FakePieces(*names(2)), opener=False, rows=claims(right))
    said = converse(opener, answerer)
    assert opener.done
    assert answerer.done
    assert not any(isinstance(frame, Holdings) for _, frame in said.frames)


def test_a_node_that_meets_itself_compares_nothing() -> None:
    pieces = FakePieces(*names(2))
    opener = side("a", pieces, opener=True, full=True)
    assert len(converse(opener, side("a", FakePieces(), opener=False)).frames) == 2
    assert opener.done
    assert not opener.full


# ── Older nodes ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("full", [False, True])
def test_an_older_node_is_told_about_members_only(full: bool) -> None:
    """It says nothing of pieces in its opening, and would end the conversation if it heard of them."""
    pieces = FakePieces(*names(3))
    for new_opens in (True, False):
        new = side("n", pieces, opener=new_opens, rows=claims(2, "n"), full=full)
        old = Exchange(opening("o", full=full), lambda: claims(1, "o"), opener=not new_opens)
        said = converse(new, old) if new_opens else converse(old, new)
        assert {type(frame) for _, frame in said.frames} == {Opening, Rows}
        assert new.done
        assert old.done
        assert not new.full


# ── Registers ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("who", [True, False])
def test_who_wants_everything_gets_and_gives_the_registers(who: bool) -> None:
    mine, theirs = FakePieces(*names(2)), FakePieces(*names(2))
    mine.put(REGISTERS, "load/a", b"1")
    theirs.put(REGISTERS, "load/b", b"2")
    opener = side("a", mine, opener=True, full=who)
    answerer = side("b", theirs, opener=False, full=not who)
    converse(opener, answerer)
    assert opener.full
    assert answerer.full
    assert sorted(mine.held[REGISTERS]) == sorted(theirs.held[REGISTERS]) == ["load/a", "load/b"]


def test_otherwise_the_registers_stay_where_they_are() -> None:
    mine, theirs = FakePieces(*names(1)), FakePieces(*names(2))
    mine.put(REGISTERS, "load/a", b"1")
    talk_over(mine, theirs)
    assert REGISTERS not in theirs.held


def test_registers_come_last_so_that_they_are_fresh() -> None:
    mine, theirs = FakePieces(), FakePieces(*names(3), "workers/1")
    theirs.put(REGISTERS, "load/b", b"2")
    talk_over(mine, theirs, full=True)
    assert [name for _, name, _ in mine.merged][-1] == REGISTERS


# ── Epochs ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("who", ["a", "b", "both"])
def test_of_two_epochs_both_go_on_in_the_later_one(who: str) -> None:
    mine, theirs = FakePieces("settings/1", prefix="a"), FakePieces("settings/1", prefix="b")
    if who != "b":
        mine.move("settings/1", 4)
    if who != "a":
        theirs.move("settings/1", 7)
    both = union(mine, theirs)
    talk_over(mine, theirs)
    assert mine.epochs == theirs.epochs == {"settings/1": 4 if who == "a" else 7}
    assert mine.documents() == theirs.documents() == both


def test_the_same_content_in_another_epoch_differs() -> None:
    mine, theirs = FakePieces("settings/1"), FakePieces("settings/1")
    theirs.move("settings/1", 2)
    talk_over(mine, theirs)
    assert mine.digest() == theirs.digest()


def moving(pieces: FakePieces, at: type[Frame], *, times: int) -> Callable[[Frame], None]:
    """Return what begins a piece anew before a frame of that kind arrives, so many times."""
    left = [times]

    def move(frame: Frame) -> None:
        if isinstance(frame, at) and left[0]:
            left[0] -= 1
            pieces.move("settings/1", pieces.epoch("settings/1") + 1)

    return move


@pytest.mark.parametrize("times", [1, AGAIN_MAX])
@pytest.mark.parametrize("at", [Request, Update, Holdings])
@pytest.mark.parametrize("mine", [True, False])
def test_a_piece_whose_epoch_moves_meanwhile_is_asked_for_again(
    times: int, at: type[Frame], mine: bool
) -> None:
    left, right = FakePieces("settings/1", prefix="l"), FakePieces("settings/1", prefix="r")
    both = union(left, right)
    opener, answerer = sides(left, right)
    converse(opener, answerer, before=moving(left if mine else right, at, times=times))
    assert opener.done
    assert answerer.done
    assert left.documents() == both
    talk_over(left, right)  # what moved after the last look comes with the next exchange
    assert left.documents() == right.documents() == both
    assert left.epochs == right.epochs


def test_a_piece_whose_epoch_never_rests_is_left_as_it_is() -> None:
    left, right = FakePieces("settings/2", prefix="l"), FakePieces("settings/1", prefix="r")
    opener, answerer = sides(left, right)
    said = converse(opener, answerer, before=moving(right, Request, times=100))
    asked = [frame for _, frame in said.frames if isinstance(frame, Request)]
    assert len(asked) == 1 + AGAIN_MAX
    assert opener.done
    assert answerer.done
    assert "settings/1" not in left.held
    assert "settings/2" in right.held


# ── Who was away for too long ────────────────────────────────────────────────


def away(*held: str, history: bytes = b"one") -> FakePieces:
    pieces = FakePieces(*held, prefix="old")
    pieces.stale = True
    pieces.history = history
    return pieces


def fresh(*held: str, history: bytes = b"one") -> FakePieces:
    pieces = FakePieces(*held, prefix="new")
    pieces.history = history
    return pieces


@pytest.mark.parametrize("stale_opens", [True, False])
def test_who_was_away_drops_what_it_holds_before_it_says_anything_of_it(stale_opens: bool) -> None:
    stale, other = away(*names(3)), fresh("settings/1")
    talk_over(*((stale, other) if stale_opens else (other, stale)))
    assert stale.forgotten == 1
    assert stale.documents() == other.documents()
    assert list(other.held) == ["settings/1"]
    assert other.merged == []


def test_who_was_away_drops_it_also_if_the_digests_happen_to_be_equal() -> None:
    stale, other = away(), fresh()
    stale.put(REGISTERS, "load/a", b"1")
    talk_over(stale, other)
    assert stale.forgotten == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (away("settings/1"), away("settings/2")),
        (away("settings/1", history=b"two"), fresh("settings/2")),
        (away("settings/1", history=b""), fresh("settings/2", history=b"")),
        (away("settings/1"), fresh("settings/2", history=b"")),
        (fresh("settings/1"), fresh("settings/2")),
    ],
)
def test_absence_counts_only_beside_a_fresh_node_of_the_same_history(
    one: FakePieces, other: FakePieces
) -> None:
    both = union(one, other)
    talk_over(one, other)
    assert one.forgotten == other.forgotten == 0
    assert one.documents() == other.documents() == both


def test_who_learned_meanwhile_from_another_peer_forgets_nothing() -> None:
    stale, other = away("settings/1"), fresh("settings/2")
    opener = side("a", stale, opener=True)
    stale.stale = False  # an exchange with a third node came to its end
    converse(opener, side("b", other, opener=False))
    assert stale.forgotten == 0
    assert sorted(other.held) == ["settings/1", "settings/2"]
