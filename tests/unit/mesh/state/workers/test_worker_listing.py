"""What a node lists for itself: exactly that, and never against an operator's removal."""

import pytest

from smg_mesh.state.workers.worker_registry import Listed, Listing, WorkerSpec
from support.state.fake_namespace import DAY_MS
from support.state.worker_registries import Nodes, W, spec_at

ONE = {"w-1": spec_at(1)}
TWO = {"w-1": spec_at(1), "w-2": spec_at(2)}


@pytest.fixture
def nodes() -> Nodes:
    return Nodes("a", "b", "c")


def test_a_listing_adds_what_is_new_and_drops_what_is_gone(nodes: Nodes) -> None:
    assert nodes["a"].list_own("static", TWO) == Listed(("w-1", "w-2"), (), ())
    assert nodes.listed("b") == {"w-1": ("static@a",), "w-2": ("static@a",)}
    listed = nodes["a"].list_own("static", {"w-2": spec_at(2), "w-3": spec_at(3)})
    assert listed == Listed(("w-3",), ("w-1",), ())
    assert list(nodes.listed("c")) == ["w-2", "w-3"]
    assert nodes["a"].list_own("static", {}) == Listed((), ("w-2", "w-3"), ())
    assert nodes.listed("c") == {}


def test_an_unchanged_listing_writes_nothing(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    before = nodes.world["a"].writes
    assert nodes["a"].list_own("static", TWO) == Listed((), (), ())
    assert nodes.world["a"].writes == before


def test_a_restarted_node_finds_its_listing_and_writes_nothing(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    for keeps_disk in (True, False):
        again = nodes.restart("a", keeps_disk=keeps_disk)
        nodes.world.sync("a", "b", "c")
        assert again.list_own("static", TWO) == Listed((), (), ())
        assert nodes.world["a"].writes == 0


def test_a_restarted_node_drops_what_it_no_longer_lists(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    nodes["b"].add("w-2", "api", spec_at(2))
    nodes["b"].add("w-3", "api", spec_at(3))
    nodes.restart("a", keeps_disk=False)
    nodes.world.sync("a", "b", "c")
    assert nodes["a"].list_own("static", {}) == Listed((), ("w-1", "w-2"), ())
    assert nodes.listed("c") == {"w-2": ("api",), "w-3": ("api",)}


def test_a_listing_touches_neither_others_nor_the_other_kind(nodes: Nodes) -> None:
    nodes["a"].list_own("file", ONE)
    nodes["b"].list_own("static", ONE)
    nodes["a"].list_own("static", ONE)
    nodes["a"].list_own("static", {})
    assert nodes.listed("c") == {"w-1": ("file@a", "static@b")}


def test_a_changed_listing_changes_the_worker(nodes: Nodes) -> None:
    nodes["a"].list_own("static", ONE)
    listed = nodes["a"].list_own("static", {"w-1": spec_at(1, priority=3)})
    assert listed == Listed(("w-1",), (), ())
    assert nodes["b"].records()[0].spec.priority == 3


@pytest.mark.parametrize("kind", ["static", "file"])
@pytest.mark.parametrize("tidied", [True, False])
def test_what_an_operator_removed_is_held_back_after_a_restart(
    nodes: Nodes, kind: Listing, *, tidied: bool
) -> None:
    nodes["a"].list_own(kind, TWO)
    nodes["b"].remove("w-1")
    if tidied:
        nodes.tidy()
    for keeps_disk in (True, False):
        again = nodes.restart("a", keeps_disk=keeps_disk)
        nodes.world.sync("a", "b", "c")
        assert again.list_own(kind, TWO) == Listed((), (), ("w-1",))
        assert list(nodes.listed("c")) == ["w-2"]


def test_an_operators_removal_during_a_downtime_is_held_back_too(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    nodes.world.cut(("b", "c"))
    nodes["b"].remove("w-1")
    again = nodes.restart("a")
    nodes.world.heal()
    assert again.list_own("static", TWO) == Listed((), (), ("w-1",))
    assert list(nodes.listed("b")) == ["w-2"]


def test_listing_early_with_the_disk_does_not_beat_a_removal_not_heard_of(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    nodes.world.cut(("b", "c"))
    nodes["b"].remove("w-1")
    again = nodes.restart("a")
    assert again.list_own("static", TWO) == Listed((), (), ())
    nodes.world.heal()
    assert list(nodes.listed("a")) == list(nodes.listed("b")) == ["w-2"]
    assert again.list_own("static", TWO) == Listed((), (), ("w-1",))


def test_what_is_held_back_comes_again_when_its_listing_changes(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    nodes["b"].remove("w-1")
    nodes.tidy()
    changed = TWO | {"w-1": spec_at(1, priority=51)}
    assert nodes["a"].list_own("static", changed) == Listed(("w-1",), (), ())
    assert nodes.listed("c")["w-1"] == ("static@a",)


def test_what_is_held_back_comes_again_when_it_is_unlisted_and_listed(nodes: Nodes) -> None:
    nodes["a"].list_own("static", ONE)
    nodes["b"].remove("w-1")
    nodes.tidy()
    assert nodes["a"].list_own("static", {}) == Listed((), ("w-1",), ())
    assert nodes["a"].list_own("static", ONE) == Listed(("w-1",), (), ())
    assert nodes.listed("c") == {"w-1": ("static@a",)}


def test_what_is_held_back_counts_again_after_an_addition_through_the_api(nodes: Nodes) -> None:
    nodes["a"].list_own("static", ONE)
    nodes["b"].remove("w-1")
    nodes.tidy()
    nodes["c"].add("w-1", "api", spec_at(1))
    assert nodes.listed("a") == {"w-1": ("api",)}
    assert nodes["a"].list_own("static", ONE) == Listed(("w-1",), (), ())
    assert nodes.listed("b") == {"w-1": ("api", "static@a")}


def test_a_second_removal_holds_it_back_again(nodes: Nodes) -> None:
    nodes["a"].list_own("static", ONE)
    for _ in range(2):
        nodes["b"].remove("w-1")
        nodes.tidy()
        assert nodes["a"].list_own("static", ONE).held_back == ("w-1",)
        nodes["c"].add("w-1", "api", spec_at(1))
        nodes["a"].list_own("static", ONE)


def test_what_is_held_back_stays_so_when_the_removal_is_forgotten(nodes: Nodes) -> None:
    nodes["a"].list_own("static", ONE)
    nodes["b"].remove("w-1")
    for _ in range(10):
        nodes.tidy()
        nodes.world.advance(DAY_MS)
        for name in "abc":
            nodes.world[name].tend()
    assert nodes.world["b"].latest("w-1") is None
    nodes.restart("a", keeps_disk=False)
    nodes.world.sync("a", "b", "c")
    assert nodes["a"].list_own("static", ONE) == Listed((), (), ("w-1",))
    assert nodes.listed("b") == {}


def test_a_node_away_for_days_is_held_back_by_what_others_keep_of_its_listing(
    nodes: Nodes,
) -> None:
    nodes["a"].list_own("static", ONE)
    nodes.world.cut(("b", "c"))
    nodes["b"].remove("w-1")
    for _ in range(10):
        nodes.tidy("b", "c")
        nodes.world.advance(DAY_MS)
    nodes.restart("a", keeps_disk=False)
    nodes.world.heal()
    assert nodes["a"].list_own("static", ONE) == Listed((), (), ("w-1",))
    assert nodes.listed("b") == {}


def test_the_same_listing_under_a_new_name_is_held_back_too(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    nodes["b"].remove("w-1")
    nodes.tidy()
    assert nodes["c"].list_own("static", TWO) == Listed(("w-2",), (), ("w-1",))
    assert nodes["c"].list_own("file", ONE) == Listed(("w-1",), (), ())


def test_a_key_sealed_anew_is_no_change_if_the_key_is_the_same(nodes: Nodes) -> None:
    def same_key(one: bytes, other: bytes) -> bool:
        return one[:4] == other[:4]

    listed = {"w-1": spec_at(1, sealed_key=b"key1 nonce1")}
    nodes["a"].list_own("static", listed, same_key=same_key)
    listed = {"w-1": spec_at(1, sealed_key=b"key1 nonce2")}
    assert nodes["a"].list_own("static", listed, same_key=same_key) == Listed((), (), ())
    listed = {"w-1": spec_at(1, sealed_key=b"key2 nonce3")}
    assert nodes["a"].list_own("static", listed, same_key=same_key).added == ("w-1",)


def test_a_listing_that_a_newer_version_wrote_is_written_over_by_its_owner(nodes: Nodes) -> None:
    nodes.world["a"].put("w-1/static@a", b"\xc1 from the future")
    assert nodes["a"].list_own("static", ONE) == Listed(("w-1",), (), ())


def test_what_a_forgotten_node_listed_goes_where_others_list_it_too(nodes: Nodes) -> None:
    nodes["a"].list_own("static", TWO)
    nodes["b"].list_own("static", ONE)
    nodes.world.cut(("b", "c"))
    written = [nodes[name].forget_node("a", living=["b", "c"]) for name in "bc"]
    assert sorted(written) == [0, 1]
    assert nodes.listed("c") == {"w-1": ("static@b",), "w-2": ("static@a",)}


def test_what_a_forgotten_node_had_held_back_goes(nodes: Nodes) -> None:
    nodes["a"].list_own("static", ONE)
    nodes["b"].remove("w-1")
    nodes.tidy()
    nodes.world.cut(("b", "c"))
    assert sum(nodes[name].forget_node("a", living=["b", "c"]) for name in "bc") == 1
    assert len(nodes.world["b"]) == 0
    assert nodes.listed("b") == nodes.listed("c") == {}


def test_nobody_is_left_to_forget_a_node(nodes: Nodes) -> None:
    nodes["a"].list_own("static", ONE)
    assert nodes["a"].forget_node("a", living=["a"]) == 0
    assert nodes.listed("a") == {"w-1": ("static@a",)}


def test_one_listing_with_a_bad_spec_says_which_error_it_is(nodes: Nodes) -> None:
    with pytest.raises(ValueError, match="url"):
        nodes["a"].list_own("static", {W: WorkerSpec(url="")})
