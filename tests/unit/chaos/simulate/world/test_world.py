import pytest

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.world.checkers import disagreements
from smg_mesh.swim.effects import OpenExchange, StreamAnswer, StreamPing
from support.mesh.simulated_world import core_of, inputs_of, small_world


def test_nodes_that_know_a_seed_find_each_other() -> None:
    world = small_world(4)
    world.run_for(3 * SECOND)
    assert disagreements(world) == []
    assert world.broken_promises == []


def test_a_killed_node_is_noticed_and_the_others_agree() -> None:
    world = small_world(3)
    world.run_for(3 * SECOND)
    world.kill(world.hosts["n2"])
    assert disagreements(world) == [
        "n0 holds n2 as ALIVE, who is no more",
        "n0 has not announced that n2 is gone",
        "n1 holds n2 as ALIVE, who is no more",
        "n1 has not announced that n2 is gone",
    ]
    world.run_for(4 * SECOND)
    assert disagreements(world) == []


@pytest.mark.parametrize("sealed", [False, True])
def test_one_seed_gives_one_history_and_another_seed_another(sealed: bool) -> None:
    def fingerprint(seed: int) -> str:
        world = small_world(3, seed=seed, sealed=sealed, traced=True)
        world.run_for(3 * SECOND)
        assert world.trace is not None
        assert world.trace.inputs == world.events > 50
        return world.trace.fingerprint()

    assert fingerprint(1) == fingerprint(1)
    assert fingerprint(1) != fingerprint(2)


def test_sealing_changes_no_history() -> None:
    histories = []
    for sealed in (False, True):
        world = small_world(3, sealed=sealed, traced=True)
        world.run_for(2 * SECOND)
        assert world.trace is not None
        histories.append(world.trace.fingerprint())
    assert histories[0] == histories[1]


def test_timers_come_when_they_are_due_and_a_little_later_never_before() -> None:
    world = small_world(1)
    world.run_for(20 * SECOND)
    beats = [at_ms for at_ms, _, _ in inputs_of(world, "n0", "timer")]
    assert beats == list(range(500, 20_000, 500))


def test_no_two_nodes_have_the_same_clock() -> None:
    world = small_world(3)
    assert len({node.offset_ms for node in world.nodes()}) == 3


def test_a_stopped_node_hears_of_its_stall_first_then_of_sockets_then_of_timers() -> None:
    order = _order_after_a_pause(timers_first=False)
    assert order[0] == "stall"
    assert order[1:] == sorted(order[1:])  # datagrams, then timers


def test_timers_before_sockets_is_the_other_order() -> None:
    order = _order_after_a_pause(timers_first=True)
    assert order[0] == "stall"
    assert order[1:] == sorted(order[1:], reverse=True)


def _order_after_a_pause(*, timers_first: bool) -> list[str]:
    world = small_world(3)
    world.run_for(3 * SECOND)
    core = core_of(world, "n1")
    node = world.hosts["n1"].node
    assert node is not None
    before = len(core.heard)
    world.stop(node)
    world.run_for(1_600 * MS)
    assert len(core.heard) == before
    world.go_on(node, timers_first=timers_first)
    heard = core.heard[before:]
    kinds = [kind for _, kind, _ in heard]
    assert kinds.count("stall") == 1
    assert kinds.count("timer") == 1  # the chain of one timer waits for itself
    assert kinds.count("datagram") >= 4
    lag_ms = heard[0][2]
    assert isinstance(lag_ms, int)
    assert 1_500 <= lag_ms <= 1_600
    return kinds


def test_a_short_pause_is_no_stall() -> None:
    world = small_world(2)
    world.run_for(SECOND)
    node = world.hosts["n1"].node
    assert node is not None
    world.stop(node)
    world.run_for(110 * MS)
    world.go_on(node, timers_first=False)
    assert inputs_of(world, "n1", "stall") == []


def test_a_node_stopped_twice_goes_on_when_both_are_over() -> None:
    world = small_world(2)
    world.run_for(SECOND)
    node = world.hosts["n1"].node
    assert node is not None
    world.stop(node)
    world.stop(node)
    world.run_for(SECOND)
    world.go_on(node, timers_first=False)
    assert node.stopped == 1
    assert inputs_of(world, "n1", "stall") == []
    world.go_on(node, timers_first=False)
    assert len(inputs_of(world, "n1", "stall")) == 1
    world.go_on(node, timers_first=False)
    assert node.stopped == 0


def test_a_dead_node_does_nothing_more() -> None:
    world = small_world(2)
    world.run_for(SECOND)
    core = core_of(world, "n1")
    world.kill(world.hosts["n1"])
    before = len(core.heard)
    world.run_for(5 * SECOND)
    assert len(core.heard) == before


def test_a_new_life_has_a_larger_boot_even_if_its_clock_went_back() -> None:
    world = small_world(2)
    host = world.hosts["n1"]
    first = core_of(world, "n1").boot
    world.kill(host)
    host.clock_wrong_ms = -86_400_000
    world.boot(host)
    assert first < core_of(world, "n1").boot < first + (17 << 16)
    world.kill(host)
    host.lose_disk()
    host.clock_wrong_ms = 0
    world.run(world.agenda.now_us + 1_000_000)
    world.boot(host)
    assert core_of(world, "n1").boot < first  # a stranger, who came later


@pytest.mark.parametrize(
    ("weather", "answer", "at_ms"),
    [
        ("fine", StreamAnswer.HERE, (0, 5)),
        ("dead", StreamAnswer.NOBODY, (0, 5)),
        ("restarted", StreamAnswer.SILENT, (0, 5)),
        ("cut", StreamAnswer.SILENT, (1_000, 1_001)),
        ("stopped", StreamAnswer.SILENT, (1_000, 1_001)),
        ("stopped for a while", StreamAnswer.HERE, (600, 605)),
        ("cut back", StreamAnswer.SILENT, (1_000, 1_001)),
    ],
)
def test_a_ping_over_tcp_says_the_truth_in_time(
    weather: str, answer: StreamAnswer, at_ms: tuple[int, int]
) -> None:
    world = small_world(2)
    world.run_for(2 * SECOND)
    asking, asked = world.hosts["n0"].node, world.hosts["n1"].node
    assert asking is not None
    assert asked is not None
    effect = core_of(world, "n0").ask(StreamPing, core_of(world, "n1"))
    if weather in ("dead", "restarted"):
        world.kill(asked.host)
    if weather == "restarted":
        world.boot(asked.host)
    if weather == "cut":
        world.network.add(Rough(block=True))
    if weather == "cut back":
        world.network.add(Rough(sources=("n1",), targets=("n0",), block=True))
    if weather.startswith("stopped"):
        world.stop(asked)
    if weather == "stopped for a while":
        world.agenda.deed(world.agenda.now_us + 600 * MS, _go_on, world, asked)
    since_ms = world.agenda.now_us // MS
    world.react(asking, "test", [effect])
    world.run_for(3 * SECOND)
    ((heard_ms, _, detail),) = inputs_of(world, "n0", "stream-ping")
    assert detail == (7, answer)
    assert at_ms[0] <= heard_ms - since_ms <= at_ms[1]


def _go_on(world: object, node: object) -> None:
    world.go_on(node, timers_first=False)  # type: ignore[attr-defined]  # a World and a Node


@pytest.mark.parametrize("weather", ["fine", "loss", "dead", "cut", "stopped"])
def test_an_exchange_ends_once_and_well_only_if_both_are_there(weather: str) -> None:
    world = small_world(3)
    world.run_for(2 * SECOND)
    asking, asked = world.hosts["n0"].node, world.hosts["n1"].node
    assert asking is not None
    assert asked is not None
    core_of(world, "n1").change_meta(b"new", now_ms=0)  # digests differ from now
    effect = core_of(world, "n0").ask(OpenExchange, core_of(world, "n1"))
    rows = len(inputs_of(world, "n0", "rows"))
    if weather == "loss":
        world.network.add(Rough(loss=0.3))
    if weather == "dead":
        world.kill(asked.host)
    if weather == "cut":
        world.network.add(Rough(block=True))
    if weather == "stopped":
        world.stop(asked)
    world.react(asking, "test", [effect])
    world.run_for(12 * SECOND)
    ((_, _, detail),) = inputs_of(world, "n0", "exchange-end")
    well = weather in ("fine", "loss")
    assert detail == ("n1", well)
    assert (len(inputs_of(world, "n0", "rows")) > rows) == well


def test_a_leaving_node_is_gone_after_its_farewell() -> None:
    world = small_world(2)
    world.run_for(2 * SECOND)
    world.leave(world.hosts["n1"])
    assert world.hosts["n1"].node is not None
    world.run_for(100 * MS)
    assert world.hosts["n1"].node is None
