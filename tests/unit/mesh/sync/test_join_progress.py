import itertools

from smg_mesh.sync.join_progress import ASK_APART_MAX_MS, EQUALS_ENOUGH, SETTLE_MS, Arrival

GRACE_MS = 15_000


class World:
    """A node called me, and its clock."""

    def __init__(self) -> None:
        self.now_ms = 5_000
        self.arrival = Arrival("me", grace_ms=GRACE_MS, now_ms=lambda: self.now_ms)

    def see(self, *others: str) -> None:
        self.arrival.set_members(["me", *others])

    def wait(self, span_ms: int = SETTLE_MS) -> None:
        self.now_ms += span_ms


def test_a_node_that_meets_nobody_holds_all_there_is_when_its_grace_is_over() -> None:
    world = World()
    assert not world.arrival.held
    assert world.arrival.due_ms() == 5_000 + GRACE_MS
    world.wait(GRACE_MS - 1)
    assert not world.arrival.held
    assert world.arrival.ask() == ""
    world.wait(1)
    assert world.arrival.held
    assert world.arrival.due_ms() is None


def test_as_long_as_somebody_lives_the_grace_changes_nothing() -> None:
    world = World()
    world.see("b")
    world.wait(2 * GRACE_MS)
    assert not world.arrival.held
    assert world.arrival.ask() == "b"
    world.see()
    assert world.arrival.held


def test_with_nobody_to_ask_it_holds_all_there_is_and_goes_on_to_do_so() -> None:
    world = World()
    world.arrival.nobody = lambda: True
    assert world.arrival.held
    world.arrival.nobody = lambda: False
    assert world.arrival.held


def test_a_full_exchange_with_one_that_holds_the_state_is_enough_at_once() -> None:
    world = World()
    world.see("b", "c")
    world.arrival.met("b", full=False, held=True)
    assert not world.arrival.held
    world.arrival.met("b", full=True, held=True)
    assert world.arrival.held
    assert world.arrival.due_ms() is None
    assert world.arrival.ask() == ""


def test_where_all_are_arriving_what_they_have_together_is_all_there_is() -> None:
    world = World()
    world.see("b", "c")
    world.arrival.met("b", full=True, held=False)
    world.arrival.met("c", full=True, held=False)
    assert not world.arrival.held
    world.wait(SETTLE_MS - 1)
    assert not world.arrival.held
    world.wait(1)
    assert world.arrival.held


def test_who_appears_late_is_waited_for() -> None:
    world = World()
    world.see("b")
    world.arrival.met("b", full=True, held=False)
    world.wait(SETTLE_MS - 1)
    world.see("b", "holder")
    world.wait(SETTLE_MS)
    assert not world.arrival.held
    world.arrival.met("holder", full=True, held=True)
    assert world.arrival.held


def test_one_that_died_is_not_waited_for() -> None:
    world = World()
    world.see("b", "c")
    world.arrival.met("b", full=True, held=False)
    world.wait()
    assert not world.arrival.held
    world.see("b")
    assert world.arrival.held


def test_whom_it_has_not_met_it_asks_one_after_the_other_and_less_and_less_often() -> None:
    world = World()
    world.see("b", "c", "d")
    world.arrival.met("c", full=True, held=False)
    assert world.arrival.ask() == ""
    asked: list[tuple[int, str]] = []
    while len(asked) < 8:
        due_ms = world.arrival.due_ms()
        assert due_ms is not None
        assert due_ms > world.now_ms
        world.now_ms = due_ms
        asked.append((due_ms - 5_000, world.arrival.ask()))
        assert world.arrival.ask() == ""
    assert [name for _, name in asked] == ["d", "b"] * 4
    spans_ms = [later[0] - sooner[0] for sooner, later in itertools.pairwise(asked)]
    assert spans_ms == [1_000, 2_000, 4_000, 8_000, 16_000, ASK_APART_MAX_MS, ASK_APART_MAX_MS]
    # An answer that comes meanwhile counts at once.
    world.arrival.met("b", full=True, held=False)
    world.arrival.met("d", full=True, held=False)
    assert world.arrival.held


def test_of_many_some_are_enough() -> None:
    world = World()
    names = [f"n{number}" for number in range(40)]
    world.see(*names)
    world.wait()
    for name in names[: EQUALS_ENOUGH - 1]:
        world.arrival.met(name, full=True, held=False)
    assert not world.arrival.held
    world.arrival.met(names[20], full=True, held=False)
    assert world.arrival.held


def test_strangers_that_were_met_count_when_they_are_members() -> None:
    world = World()
    world.arrival.met("b", full=True, held=False)
    world.wait()
    assert not world.arrival.held
    world.see("b")
    assert not world.arrival.held
    world.wait()
    assert world.arrival.held
