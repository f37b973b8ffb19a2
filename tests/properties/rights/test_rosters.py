"""Rosters change one name at a time, in any weather: what stands never adds up to more, and nothing is minted twice."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from smg_mesh.escrow.limit_model import Roster
from smg_mesh.escrow.roster import roster_values as rosters
from smg_mesh.escrow.roster.roster_values import Assembly, changed, first, is_better, parts
from support.rights.lease_faults import Weather
from support.rights.lease_invariants import AMOUNT
from support.rights.lease_world import World

NAMES = ("a", "b", "c", "d", "e", "f")


def founded(
    count: int, *, seed: int = 1, weather: Weather | None = None, skew: bool = False
) -> World:
    """Return a world in which the first so many names have begun a roster."""
    world = World(seed, names=NAMES, weather=weather, rosters_change=True, skew=skew)
    for name in NAMES[:count]:
        world.nodes[name].boot(expect=count)
    world.run_until(lambda: agreed(world, NAMES[:count], count), within_ms=9_000)
    return world


def agreed(world: World, names: tuple[str, ...], divisor: int) -> bool:
    """Return whether these are the roster of all of them, and each divides by that."""
    keepers = [world.nodes[name].keeper for name in names]
    return all(
        keeper.roster is not None and keeper.roster.names == names and keeper.divisor() == divisor
        for keeper in keepers
    )


def test_those_who_see_each_other_begin_a_roster() -> None:
    world = World(1, names=NAMES, rosters_change=True)
    for name in "abc":
        world.nodes[name].boot(expect=2)
    took_ms = world.run_until(lambda: agreed(world, ("a", "b", "c"), 3), within_ms=1_500)
    assert took_ms >= 600
    assert all(world.nodes[name].keeper.founder for name in "abc")


def test_a_node_without_seeds_begins_one_alone_and_others_join_it() -> None:
    world = World(1, names=NAMES, rosters_change=True)
    world.nodes["a"].boot(expect=1)
    world.run_until(lambda: agreed(world, ("a",), 1), within_ms=200)
    world.nodes["b"].boot(expect=2)
    world.run_until(lambda: agreed(world, ("a", "b"), 2), within_ms=20_000)
    assert not world.nodes["b"].keeper.founder


def test_a_newcomer_is_in_after_ten_seconds_and_has_its_part_when_all_made_room() -> None:
    world = founded(3)
    world.nodes["d"].boot(expect=2)
    world.run_until(lambda: world.part("a") == 4, within_ms=14_000)
    assert world.part("d") == 0
    world.run_until(lambda: agreed(world, ("a", "b", "c", "d"), 4), within_ms=5_000)


def test_as_long_as_one_name_has_not_made_room_there_is_nothing_for_the_newcomer() -> None:
    world = founded(4)
    world.nodes["e"].boot(expect=2)
    world.run(9_000)
    rest = frozenset("abce")
    world.groups = [rest, frozenset("d")]
    world.run_until(lambda: world.part("a") == 5, within_ms=9_000)
    world.run(6_000)
    assert (world.part("d"), world.part("e")) == (4, 0)
    world.groups = []
    world.run_until(lambda: agreed(world, NAMES[:5], 5), within_ms=15_000)


def test_who_leaves_is_removed_and_the_others_grow() -> None:
    world = founded(4)
    world.left.append("d")
    world.nodes["d"].crash()
    world.run_until(lambda: agreed(world, ("a", "b", "c"), 3), within_ms=6_000)


def test_the_dead_stay_until_an_operator_says_that_they_never_come_back() -> None:
    world = founded(3)
    world.nodes["c"].crash()
    world.run(20_000)
    assert world.part("a") == 3
    for name in "ab":
        world.nodes[name].keeper.forget("c")
    world.run_until(lambda: agreed(world, ("a", "b"), 2), within_ms=6_000)


def test_who_comes_back_after_it_left_has_nothing_by_its_old_roster() -> None:
    world = founded(3)
    world.left.append("c")
    world.nodes["c"].crash()
    world.run_until(lambda: agreed(world, ("a", "b"), 2), within_ms=6_000)
    world.left.clear()
    world.nodes["c"].boot(expect=2)
    world.run(5_000)
    assert world.part("c") == 0
    world.run_until(lambda: agreed(world, ("a", "b", "c"), 3), within_ms=20_000)


def test_a_restarted_name_has_its_part_again_once_a_majority_says_so() -> None:
    world = founded(3)
    world.nodes["c"].crash()
    world.run(300)
    world.groups = [frozenset("ab"), frozenset("c")]
    world.nodes["c"].boot(expect=2)
    world.run(4_000)
    assert world.part("c") == 0
    world.groups = []
    world.run_until(lambda: world.part("c") == 3, within_ms=1_500)


def test_two_rosters_that_meet_become_the_larger_one() -> None:
    world = World(2, names=NAMES, rosters_change=True, keys=())
    world.islands = True
    world.groups = [frozenset("abc"), frozenset("de")]
    for name in "abcde":
        world.nodes[name].boot(expect=2)
    world.run_until(lambda: agreed(world, ("a", "b", "c"), 3), within_ms=5_000)
    world.run_until(lambda: agreed(world, ("d", "e"), 2), within_ms=5_000)
    world.groups = []
    world.run_until(lambda: world.part("d") == 0 and world.part("e") == 0, within_ms=7_000)
    world.run_until(lambda: agreed(world, NAMES[:5], 5), within_ms=40_000)


def test_the_first_roster_of_a_founder_with_a_slow_disk_is_taken_over_by_those_that_accepted_it() -> (
    None
):
    world = World(3, names=NAMES, rosters_change=True, keys=())
    for name in "abc":
        world.nodes[name].boot(expect=2)
    slow = world.nodes["a"]
    world.run_until(lambda: slow.keeper.unkept is not None, within_ms=2_000)
    world.groups = [frozenset("a"), frozenset("bc")]
    slow.paused_until_ms = world.now_ms + 9_000
    begun = slow.keeper.unkept
    assert begun is not None
    world.run_until(
        lambda: all(world.nodes[name].keeper.divisor() == 3 for name in "bc"), within_ms=9_000
    )
    assert {world.nodes[name].keeper.roster for name in "bc"} == {begun}
    world.groups = []
    world.run_until(lambda: agreed(world, ("a", "b", "c"), 3), within_ms=30_000)
    assert slow.keeper.roster == begun


def trouble(world: World, rng: Random, name: str) -> None:
    """Let one thing happen to a name."""
    node = world.nodes[name]
    match rng.randrange(8):
        case 0 | 1 | 2 if not node.up:
            if name in world.left:
                world.left.remove(name)
            node.offset_ms += max(0, node.wall_max_ms - node.wall_ms)
            node.boot(expect=2)
        case 3 if sum(one.up for one in world.nodes.values()) > 2:
            node.crash()
            world.left.append(name)
        case 4:
            node.crash(lose_disk=rng.random() < 0.3)
        case 5:
            node.paused_until_ms = world.now_ms + rng.randint(100, 5_000)
        case 6:
            side = frozenset(rng.sample(NAMES, rng.randint(1, 3)))
            world.groups = [side, frozenset(NAMES) - side]
        case _:
            world.groups = []
            world.weather.loss = rng.choice([0.0, 0.1, 0.3])


def history(seed: int) -> World:
    """Let names come and go, be cut off, die and return."""
    weather = Weather(loss=0.0, twice=0.1, late=0.03, delay_ms=(1, 30))
    world = founded(3, seed=seed, weather=weather, skew=True)
    rng = Random(seed)
    for _ in range(14):
        trouble(world, rng, rng.choice(NAMES))
        world.run(rng.choice([200, 1_000, 3_000, 12_000]))
    return world


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_what_stands_adds_up_and_nothing_is_minted_twice_in_any_history(seed: int) -> None:
    world = history(seed)
    assert all(total <= AMOUNT for total in world.minted().values())


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("join"), st.sampled_from(NAMES)),
            st.tuples(st.just("leave"), st.sampled_from(NAMES)),
            st.tuples(st.just("grow"), st.just("")),
        ),
        max_size=30,
    )
)
def test_the_smallest_divisors_of_all_names_never_add_up_to_more_than_one(
    steps: list[tuple[rosters.Kind, str]],
) -> None:
    roster = first(bytes(16), ["a", "b"])
    for kind, member in steps:
        before = roster
        roster = changed(roster, kind, member, since_ms=0) or roster
        assert sum(1 / divisor for divisor in roster.divisors if divisor) <= 1 + 1e-9
        assert len(set(before.names) ^ set(roster.names)) <= 1
        assert before.majority + roster.majority > len(set(before.names) | set(roster.names))


def test_a_change_that_makes_no_sense_is_none() -> None:
    roster = first(bytes(16), ["a", "b"])
    assert changed(roster, "join", "a", since_ms=0) is None
    assert changed(roster, "leave", "x", since_ms=0) is None
    assert changed(first(bytes(16), ["a"]), "leave", "a", since_ms=0) is None
    assert changed(roster, "", "", since_ms=0) is None


@given(st.permutations(range(4)), st.integers(0, 3))
def test_a_roster_in_parts_comes_together_in_any_order_and_twice(
    order: list[int], again: int
) -> None:
    roster = first(bytes(16), [f"n{number:02}" for number in range(40)])
    told = parts(roster)
    assert len(told) == 4
    assembly = Assembly()
    whole: list[Roster] = []
    for place in [again, *order]:
        part = assembly.add(told[place])
        whole += [part] if part is not None else []
    assert whole[0] == roster


def test_the_later_version_the_larger_roster_and_the_smaller_id_count() -> None:
    small, large = first(b"a" * 16, ["a"]), first(b"b" * 16, ["a", "b"])
    later = changed(small, "grow", "", since_ms=0)
    assert later is not None
    assert is_better(later, small)
    assert not is_better(small, later)
    proven = replace(large, proven=True)
    assert is_better(proven, later)
    assert not is_better(later, proven)
    assert is_better(proven, large)
    assert not is_better(large, proven)
    assert is_better(later, large)
    assert not is_better(large, later)
    assert is_better(first(b"a" * 16, ["x", "y"]), large)
    assert is_better(small, None)
    assert not is_better(small, small)
