"""What an owner finds when a window is over: lies, and nothing where everything is in order."""

import pytest

from smg_mesh.escrow.election.slot_holder import Holder
from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.messages import AskRow
from smg_mesh.escrow.owning.overspend_check import reckon
from smg_mesh.escrow.owning.window_pool import Pool
from support.rights.escrow_world import Defined, World, load

KEY = "tenant=a#requests/1000"
NAMES = ("a", "b", "c")
ROSTER = Roster(bytes(16), 1, NAMES, (3, 3, 3))
ME = Life("a", 1)
B = Life("b", 1)
C = Life("c", 1)


def pool(*, minted: int = 50, made: int | None = None, term: int = 7, long: bool = True) -> Pool:
    """A limit of 100: 16 stand with each of three names, 50 were minted by an owner of `long` standing or a new one."""
    limit = Limit(KEY, "requests", 100, 1_000, "balanced", 0.5)
    before = Pool(limit, 4, term, before=Pool(limit, 3, term))
    one = Pool(limit, 5, term, before=before if long else None)
    one.roster = ROSTER
    one.allow(limit.mintable(ROSTER, ()))
    one.minted = minted
    one.made = minted if made is None else made
    return one


def said(
    one: Pool, life: Life, *, spent: int, given: int = 0, sent: int = 1, loaned: int = 0
) -> None:
    row = AskRow(7, KEY, 5, given, 0, spent, 0, loaned=loaned)
    one.learn(life, row, sent, now_ms=0).given = given


def test_all_that_there_was_may_be_spent() -> None:
    one = pool()
    said(one, ME, spent=16)
    said(one, B, spent=66, given=50)
    said(one, C, spent=16)
    assert reckon(one, ME) is None


def test_more_than_was_minted_and_stands_is_found_whoever_minted_it() -> None:
    one = pool(made=10)
    said(one, B, spent=60)
    said(one, C, spent=44)
    difference = reckon(one, ME)
    assert difference is not None
    assert difference.more == 60 + 44 - 50 - one.stands
    assert difference.said == (("b", 1, 60, 0), ("c", 1, 44, 0))
    assert difference.minting.minted == 10


def test_a_node_that_spends_more_than_it_had_is_found_though_others_spent_less() -> None:
    one = pool()
    said(one, B, spent=20, given=3)
    difference = reckon(one, ME)
    assert difference is not None
    assert difference.more == 1


def test_what_a_node_had_of_an_owner_before_is_not_held_against_it() -> None:
    one = pool(made=0)
    said(one, B, spent=60)
    assert reckon(one, ME) is None
    # The one before may have minted nothing, and given what others had returned to it.
    one = pool(long=False)
    said(one, B, spent=60, given=40)
    assert reckon(one, ME) is None


def test_what_was_borrowed_is_beyond_the_limit_by_its_mode() -> None:
    one = pool()
    said(one, B, spent=33, loaned=17)
    assert reckon(one, ME) is None


def test_only_the_newest_word_of_a_node_counts() -> None:
    one = pool()
    said(one, B, spent=16, sent=9)
    said(one, B, spent=500, sent=3)
    assert reckon(one, ME) is None


def test_nothing_is_said_of_what_is_not_known_or_was_given_without_a_lease() -> None:
    for one in (pool(minted=-1), pool(term=0)):
        said(one, B, spent=500)
        assert reckon(one, ME) is None


def test_a_lower_limit_leaves_what_others_may_still_go_by() -> None:
    limit = Limit(KEY, "requests", 10, 1_000, "balanced", 0.5, older=((100, 0.5),))
    one = Pool(limit, 5, 7)
    one.roster = ROSTER
    one.allow(limit.mintable(ROSTER, ()))
    one.minted = 0
    for life in (ME, B, C):
        said(one, life, spent=16)
    assert reckon(one, ME) is None


def test_a_cluster_in_order_has_nothing_to_say_and_a_lie_is_said_once_for_each_window() -> None:
    world = World(NAMES, Defined(Limit(KEY, "requests", 100, 1_000, "strict", 0.5)))
    rates = dict.fromkeys(NAMES, 100.0)
    world.run(6_000, load(world, KEY, rates))
    assert not world.differences
    share = world.nodes["b"].core.share(
        KEY, now_ms=world.nodes["b"].now_ms, wall_ms=world.nodes["b"].wall_ms
    )
    assert share is not None
    world.run(world.to_border(1_000) + 300, load(world, KEY, rates))
    share.spent += 90
    lied = share.window
    world.run(4_000, load(world, KEY, rates))
    assert [(one.minting.key, one.minting.window) for one in world.differences] == [(KEY, lied)]
    assert world.differences[0].more > 0


def test_an_owner_does_not_judge_nodes_that_go_by_definitions_it_has_not_heard_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(NAMES, Defined(Limit(KEY, "requests", 100, 1_000, "strict", 0.5)))
    rates = dict.fromkeys(NAMES, 100.0)
    world.run(6_000, load(world, KEY, rates))
    share = world.nodes["b"].core.share(
        KEY, now_ms=world.nodes["b"].now_ms, wall_ms=world.nodes["b"].wall_ms
    )
    assert share is not None
    monkeypatch.setattr(Holder, "current", lambda *_, **__: frozenset({"a", "c"}))
    world.run(world.to_border(1_000) + 300, load(world, KEY, rates))
    share.spent += 90
    world.run(4_000, load(world, KEY, rates))
    assert not world.differences
