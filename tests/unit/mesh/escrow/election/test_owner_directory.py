"""Whom a node asks that is told nothing of owners: the best claim, then the others in turn, then whoever answered."""

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.escrow.election.owner_directory import HEARD_FOR_MS, TURN_MS, OwnerDirectory

NAMES = ("a", "b", "c")
SLOT = 7


def test_the_best_claim_is_asked_first_and_the_others_in_turn() -> None:
    places = OwnerDirectory()
    asked = [places.owner(SLOT, NAMES, now_ms=5 + TURN_MS * turn) for turn in range(7)]
    assert asked == ["a", "b", "c", "a", "b", "c", "a"]
    assert places.owner(SLOT + 1, NAMES, now_ms=5 + 7 * TURN_MS) == "a", "each slot for itself"


def test_who_has_answered_is_asked_while_it_does() -> None:
    places = OwnerDirectory()
    places.owner(SLOT, NAMES, now_ms=0)
    places.heard([SLOT], "c", now_ms=40)
    assert {places.owner(SLOT, NAMES, now_ms=at) for at in range(40, 40 + HEARD_FOR_MS)} == {"c"}


def test_who_answers_no_more_is_asked_once_more_before_the_others() -> None:
    places = OwnerDirectory()
    places.heard([SLOT], "b", now_ms=0)
    late_ms = HEARD_FOR_MS + 1
    asked = [places.owner(SLOT, NAMES, now_ms=late_ms + TURN_MS * turn) for turn in range(4)]
    assert asked == ["b", "c", "a", "b"]


def test_who_is_out_of_sight_is_not_asked() -> None:
    places = OwnerDirectory()
    places.heard([SLOT], "c", now_ms=0)
    assert places.owner(SLOT, ("a", "b"), now_ms=1) == "a"
    assert places.owner(SLOT, (), now_ms=2) == ""


def test_with_other_names_it_begins_with_the_best_claim_again() -> None:
    places = OwnerDirectory()
    places.owner(SLOT, NAMES, now_ms=0)
    places.forget()
    assert places.owner(SLOT, NAMES, now_ms=TURN_MS) == "a"


@given(
    st.lists(st.integers(0, 3 * TURN_MS), min_size=1, max_size=30),
    st.integers(1, 6),
    st.none() | st.integers(0, 5),
)
def test_an_owner_is_found_within_one_round(
    steps: list[int], count: int, before: int | None
) -> None:
    """However often one looks: each name is asked once before any is asked again."""
    names = [f"n{number}" for number in range(count)]
    places = OwnerDirectory()
    if before is not None:
        places.heard([SLOT], f"n{before}", now_ms=-2 * HEARD_FOR_MS)
    now_ms = 0
    asked: dict[int, str] = {}
    for step in [0, *steps]:
        now_ms += step
        asked[now_ms // TURN_MS] = places.owner(SLOT, names, now_ms=now_ms)
    first = asked[0]
    for turn, name in asked.items():
        assert name == names[(names.index(first) + turn) % count]
