from collections.abc import Sequence

import pytest

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.hosts.core_interface import CoreFactory
from smg_chaos.simulate.world.checkers import agreed, disagreements
from smg_mesh.swim.effects import Effect, Member, MemberDown, MemberUp, Note, SetTimer, Timer
from smg_mesh.swim.messages import Address, Claim, Rank
from support.mesh.fake_core import FakeCore
from support.mesh.simulated_world import core_of, factory, small_world


def broken_by(core: type[FakeCore], *, nodes: int = 3) -> str:
    """Return the promises that a cluster of such cores breaks."""
    world = small_world(nodes, make_core=factory(core))
    world.run_for(20 * SECOND)
    return "\n".join(world.broken_promises)


class Backward(FakeCore):
    """Believes old claims again."""

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        for name, claim in self.table.items():
            if claim.boot > 1:
                self.table[name] = Claim(name, claim.boot - 1, 0, claim.rank, claim.address, b"")
        return super().handle_timer(timer, now_ms=now_ms)


class Accusing(FakeCore):
    """Raises the incarnation of others."""

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        for name, claim in self.table.items():
            raised = claim.incarnation + 1
            self.table[name] = Claim(name, claim.boot, raised, claim.rank, claim.address, b"")
        return super().handle_timer(timer, now_ms=now_ms)


class Inventive(FakeCore):
    """Knows members that never were."""

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        self.table["ghost"] = Claim("ghost", 7, 0, Rank.DEAD, self.address, b"")
        return super().handle_timer(timer, now_ms=now_ms)


class Forgetful(FakeCore):
    """Loses the row of a living member."""

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        self.table.clear()
        return [SetTimer(timer, now_ms + 500)]


class Double(FakeCore):
    """Has two rows for one name."""

    def members(self) -> list[Member]:
        return [*super().members(), *super().members()[:1]]


class Repeating(FakeCore):
    """Announces everybody again and again."""

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        again = [MemberUp(self.shown(claim), False) for claim in self.table.values()]
        return [*again, *super().handle_timer(timer, now_ms=now_ms)]


class Mourning(FakeCore):
    """Announces deaths of members it never announced."""

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        return [MemberDown(self.shown(self.me), "why not"), SetTimer(timer, now_ms + 500)]


class Hoarding(FakeCore):
    """Keeps more rows of the gone than it may."""

    def rows(self) -> list[Claim]:
        gone = [Claim(f"g{number:05}", 1, 0, Rank.DEAD, self.address) for number in range(5_000)]
        return [*gone, *super().rows()]


@pytest.mark.parametrize(
    ("core", "promise"),
    [
        (FakeCore, ""),
        (Backward, "went back from"),
        (Accusing, "but it only reached 0"),
        (Inventive, "a life of ghost that never was"),
        (Forgetful, "which was not gone"),
        (Double, "two rows for"),
        (Repeating, "up twice"),
        (Mourning, "gone, who was not up"),
    ],
)
def test_a_core_that_breaks_a_promise_is_caught(core: type[FakeCore], promise: str) -> None:
    found = broken_by(core)
    assert promise in found
    assert bool(promise) == bool(found)


def test_too_many_rows_of_the_gone_are_caught() -> None:
    world = small_world(1, make_core=factory(Hoarding))
    assert any("keeps 5000 rows of the gone" in promise for promise in world.broken_promises)


class Gullible(FakeCore):
    """Does something when it is given garbage."""

    def handle_datagram(self, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        effects = super().handle_datagram(data, sender, now_ms=now_ms)
        if any(isinstance(effect, Note) for effect in effects):
            effects.append(SetTimer(Timer("revenge", "", 1), now_ms))
        return effects


class Poisoned(FakeCore):
    """Lets garbage change its table."""

    def handle_datagram(self, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        effects = super().handle_datagram(data, sender, now_ms=now_ms)
        if any(isinstance(effect, Note) for effect in effects):
            self.incarnation += 1
        return effects


@pytest.mark.parametrize(
    ("core", "promise"),
    [
        (FakeCore, None),
        (Gullible, "acted on garbage"),
        (Poisoned, "let garbage change its table"),
    ],
)
def test_what_garbage_must_not_do_is_caught(core: type[FakeCore], promise: str | None) -> None:
    world = small_world(2, make_core=factory(core))
    world.run_for(SECOND)
    world.give_garbage(world.hosts["n1"], b"garbage", Address("192.0.2.1", 9))
    assert world.notes["refused"] == 1
    if promise is None:
        assert world.broken_promises == []
    else:
        assert promise in world.broken_promises[0]


class Lonely(FakeCore):
    """Never learns of anybody, and says nothing to others."""

    def merge(self, claim: Claim, *, now_ms: int) -> list[Effect]:
        return []

    def handle_rows(self, rows: Sequence[Claim], *, now_ms: int) -> list[Effect]:
        return []


def test_tables_that_differ_in_the_end_are_named() -> None:
    def make_core(name: str, *rest: object) -> FakeCore:
        core = Lonely if name == "n2" else FakeCore
        return core(name, *rest)  # type: ignore[arg-type]  # handed through as they came

    made: CoreFactory = make_core
    world = small_world(3, make_core=made)
    world.run_for(3 * SECOND)
    assert not agreed(world)
    assert disagreements(world) == [
        "n2 does not know n0, who is alive",
        "n2 does not know n1, who is alive",
        "n2 has not announced n0",
        "n2 has not announced n1",
    ]
    assert len(disagreements(world, announced=False)) == 2


def test_a_wrong_address_is_a_difference() -> None:
    world = small_world(2)
    world.run_for(2 * SECOND)
    moved = world.fresh_address()
    world.network.move(world.hosts["n1"], moved)
    assert disagreements(world) == [
        f"n0 has 10.0.0.2:7946 b'' for n1, who is {moved} b''",
        f"n1 has 10.0.0.2:7946 b'' for n1, who is {moved} b''",
    ]


def test_two_processes_with_one_name_are_a_difference() -> None:
    world = small_world(2)
    world.boot(world.add_host("n1", label="n1-twin", seeds=("n0",)))
    world.run_for(100 * MS)
    assert "two processes live under the name n1" in disagreements(world)


def test_who_believes_to_be_cut_off_is_named() -> None:
    world = small_world(1)
    core_of(world, "n0").isolated = True
    assert disagreements(world) == ["n0 believes that it is cut off"]


def test_two_lives_with_one_boot_are_caught() -> None:
    world = small_world(2)
    one, other = world.nodes()
    one.name = other.name = "n"
    world.checkers.rebooted(one, 1 << 63)
    assert world.broken_promises == []
    world.checkers.rebooted(other, 1 << 63)
    assert "two lives of n have one boot" in world.broken_promises[0]


def test_a_life_that_goes_on_under_a_smaller_boot_is_caught() -> None:
    world = small_world(1)
    node = world.hosts["n0"].node
    assert node is not None
    world.checkers.rebooted(node, node.boot - 1)
    assert "n0 went from boot" in world.broken_promises[0]
