from typing import get_args

import pytest

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.faults import (
    ClockJump,
    Crash,
    Fault,
    Garbage,
    Join,
    Leave,
    Meta,
    Move,
    Pause,
    Replay,
    Restart,
    Slow,
    Storm,
    Twin,
    described,
    plan_fault,
)
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.world.world import World
from support.mesh.simulated_world import core_of, inputs_of, small_world

AT_MS = 2_000


def world_with(*faults: Fault, nodes: int = 3, run_ms: int = AT_MS + 500) -> World:
    world = small_world(nodes)
    world.listen_in()
    for fault in faults:
        plan_fault(world, fault)
    world.run(run_ms * MS)
    return world


def deeds(world: World) -> list[str]:
    return [f"{one.name} {one.detail}" for one in world.chronicle.deeds()]


def test_a_crash_ends_a_life_and_a_second_one_does_nothing() -> None:
    world = world_with(Crash(at_ms=AT_MS, who="n1"), Crash(at_ms=AT_MS + 1, who="n1"))
    assert world.hosts["n1"].node is None
    assert deeds(world) == ["n1 crashes"]


def test_nobody_is_harmed_by_faults_of_those_who_are_not_there() -> None:
    faults: list[Fault] = [
        Crash(at_ms=AT_MS, who="x"),
        Restart(at_ms=AT_MS, who="x"),
        Leave(at_ms=AT_MS, who="x"),
        Twin(at_ms=AT_MS, who="x"),
        Pause(at_ms=AT_MS, who="x", for_ms=1),
        Slow(at_ms=AT_MS, who="x", for_ms=1, busy_ms=1),
        ClockJump(at_ms=AT_MS, who="x", by_ms=1),
        Garbage(at_ms=AT_MS, who="x", count=1),
        Replay(at_ms=AT_MS, who="x", count=1),
        Meta(at_ms=AT_MS, who="x"),
        Move(at_ms=AT_MS, who="x"),
        Join(at_ms=AT_MS, who="n0"),
    ]
    assert {type(fault) for fault in faults} == set(get_args(Fault)) - {Storm}
    world = world_with(*faults)
    assert deeds(world) == []
    assert world.broken_promises == []


def test_a_restart_begins_a_later_life_elsewhere() -> None:
    world = world_with(Restart(at_ms=AT_MS, who="n1", new_address=True))
    host = world.hosts["n1"]
    assert host.lives == 2
    assert str(host.address) == "10.0.0.4:7946"
    assert core_of(world, "n0").table["n1"].boot == core_of(world, "n1").boot
    assert deeds(world) == ["n1 starts again at 10.0.0.4:7946"]


def test_a_restart_with_everything_lost_has_a_smaller_boot() -> None:
    fault = Restart(at_ms=AT_MS, who="n1", lost_disk=True)
    world = world_with(fault)
    assert core_of(world, "n0").table["n1"].boot > core_of(world, "n1").boot


def test_a_new_member_joins() -> None:
    world = world_with(Join(at_ms=AT_MS, who="new"))
    assert "new" in core_of(world, "n2").table or "new" in core_of(world, "n1").table


def test_a_twin_runs_beside_the_original() -> None:
    world = world_with(Twin(at_ms=AT_MS, who="n2"))
    assert core_of(world, "n2-twin").name == "n2"
    assert core_of(world, "n2-twin").boot < core_of(world, "n2").boot


def test_a_pause_ends_by_itself() -> None:
    world = world_with(Pause(at_ms=AT_MS, who="n1", for_ms=400))
    (stall,) = inputs_of(world, "n1", "stall")
    assert stall[0] == AT_MS + 400


def test_a_slow_loop_stalls_again_and_again_and_then_no_more() -> None:
    fault = Slow(at_ms=AT_MS, who="n1", for_ms=10_000, busy_ms=800)
    world = world_with(fault, run_ms=AT_MS + 30_000)
    stalls = [at_ms for at_ms, _, _ in inputs_of(world, "n1", "stall")]
    assert len(stalls) > 8
    assert stalls[0] > AT_MS
    assert stalls[-1] <= AT_MS + 10_000 + 800
    node = world.hosts["n1"].node
    assert node is not None
    assert node.stopped == 0


def test_a_storm_comes_and_goes() -> None:
    fault = Storm(at_ms=AT_MS, for_ms=5_000, rough=Rough(sources=("n0",), block=True))
    world = world_with(fault, run_ms=AT_MS + 4_900)
    assert core_of(world, "n1").table["n0"].rank.gone
    assert world.network.route(world.hosts["n0"], world.hosts["n1"].address).rough is not None
    world.run_for(200 * MS)
    assert world.network.route(world.hosts["n0"], world.hosts["n1"].address).rough is None
    assert deeds(world) == ["network n0 -> all: cut", "network is rid of: n0 -> all: cut"]


def test_a_clock_that_jumps_moves_no_timer_and_the_next_boot() -> None:
    world = world_with(ClockJump(at_ms=AT_MS, who="n1", by_ms=3_600_000))
    assert world.hosts["n1"].wall_ms(0) - world.hosts["n0"].wall_ms(0) == 3_600_000
    beats = [at_ms for at_ms, _, _ in inputs_of(world, "n1", "timer")]
    assert beats == [500, 1_000, 1_500, 2_000, 2_500][: len(beats)]


@pytest.mark.parametrize("sealed", [False, True])
def test_garbage_is_refused_and_counted(sealed: bool) -> None:
    world = small_world(2, sealed=sealed)
    world.listen_in()
    plan_fault(world, Garbage(at_ms=AT_MS, who="n1", count=25))
    world.run(3 * SECOND)
    assert world.refused_datagrams + world.notes.get("refused", 0) == 25
    assert (world.refused_datagrams > 0) == sealed
    assert world.broken_promises == []


def test_replayed_packets_are_ones_that_were_sent() -> None:
    world = world_with(Replay(at_ms=AT_MS, who="n1", count=25), run_ms=AT_MS + 10)
    again = [at_ms for at_ms, _, _ in inputs_of(world, "n1", "datagram") if at_ms == AT_MS]
    assert len(again) >= 25
    assert world.notes.get("refused", 0) == 0


def test_a_sealed_cluster_refuses_what_it_heard_before() -> None:
    world = small_world(2, sealed=True)
    world.listen_in()
    plan_fault(world, Replay(at_ms=AT_MS, who="n1", count=25))
    world.run(3 * SECOND)
    assert world.refused_datagrams > 0


def test_meta_and_address_change_within_a_life() -> None:
    world = world_with(Meta(at_ms=AT_MS, who="n1"), Move(at_ms=AT_MS + 10, who="n1"))
    core = core_of(world, "n1")
    assert core.incarnation == 2
    assert core.meta == b"at 2000"
    assert core.address == world.hosts["n1"].address
    assert world.hosts["n1"].lives == 1


def test_a_leaving_member_is_gone() -> None:
    world = world_with(Leave(at_ms=AT_MS, who="n1"))
    assert world.hosts["n1"].node is None


def test_a_rule_of_the_network_is_told_in_words() -> None:
    assert described(Rough(loss=0.2, duplicate=0.1)) == "all -> all: loss 20%, duplicates 10%"
    cut = Rough(sources=("a", "b"), targets=("c",), both_ways=True, block=True)
    assert described(cut) == "a,b <-> c: cut"
    odd = Rough(targets=("c",), reorder=0.3, delay_us=5, jitter_us=6)
    assert described(odd) == "all -> c: reordered 30%, delay +5 us, jitter +6 us"
