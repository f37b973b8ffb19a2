import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.io.views import STATES, member_view, pack_meta, unpack_meta
from smg_mesh.swim.effects import Member
from smg_mesh.swim.messages import Address, Rank


def row(name: str, heard_ms: int | None = 700) -> Member:
    meta = pack_meta({"zone": "z"})
    return Member(
        name, Address("fd00::2", 7), 9, 2, Rank.SUSPECT, meta, 400, heard_ms, 2.5, True, "c"
    )


def test_a_row_is_shown_with_times_of_the_wall() -> None:
    view = member_view(row("b"), me="a", health=3, now_ms=1000, wall_ms=5_000_000)
    assert (view.name, view.state, view.address) == ("b", "suspect", "[fd00::2]:7")
    assert (view.boot, view.incarnation, view.accuser) == (9, 2, "c")
    assert (view.since_ms, view.heard_ms_ago, view.rtt_ms) == (4_999_400, 300, 2.5)
    assert (view.me, view.health, view.meta) == (False, None, {"zone": "z"})


def test_this_nodes_own_row_has_its_health_and_no_distance() -> None:
    view = member_view(row("a"), me="a", health=3, now_ms=1000, wall_ms=5_000_000)
    assert (view.me, view.health, view.rtt_ms, view.heard_ms_ago) == (True, 3, None, None)


def test_who_was_never_heard_was_never_heard() -> None:
    view = member_view(row("b", None), me="a", health=0, now_ms=1000, wall_ms=0)
    assert view.heard_ms_ago is None


def test_every_rank_has_a_word() -> None:
    assert [STATES[rank] for rank in Rank] == ["alive", "suspect", "dead", "left"]


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.booleans() | st.text(max_size=8) | st.integers(-(2**63), 2**63),
        max_size=8,
    )
)
def test_meta_travels_unchanged(meta: dict[str, str | int | bool]) -> None:
    assert unpack_meta(pack_meta(meta)) == meta


@pytest.mark.parametrize("meta", [{"x": "y" * 510}, {"x": 2**64}, {"x": "\ud800"}, {"x": 1.5}])
def test_meta_that_cannot_travel_is_refused(meta: dict[str, str | int | bool]) -> None:
    with pytest.raises(ValueError, match="meta"):
        pack_meta(meta)


@given(st.binary(max_size=40))
def test_any_meta_of_a_stranger_can_be_shown(packed: bytes) -> None:
    assert all(isinstance(key, str) for key in unpack_meta(packed))
