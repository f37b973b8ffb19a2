"""Who looks at a worker, how often, and what a node makes of what it sees and hears; on a made-up clock."""

import random

import pytest

from smg_node.fleet.health.peer_verdicts import ProberConsensus, Sight, prober_consensus
from smg_node.fleet.health.probe_schedule import NEVER, ProbeOptions, ProbeSchedule
from support.fleet.probe_world import OPTIONS, Watch

PROBERS = ("a", "b")
UP_UP = (Sight("a", up=True), Sight("b", up=True))
DOWN_DOWN = (Sight("a", up=False), Sight("b", up=False))
SPLIT = (Sight("a", up=True), Sight("b", up=False))


def names(count: int) -> list[str]:
    return [f"n{at:02}" for at in range(count)]


def workers(count: int) -> list[str]:
    return [f"w-{at:012x}" for at in range(count)]


def vigil(me: str = "x") -> ProbeSchedule:
    return ProbeSchedule(me, OPTIONS, now_s=0.0, rng=random.Random(1))


def brought_up(me: str = "x") -> ProbeSchedule:
    """A worker that is up by the probers' word and by two looks from here."""
    made = vigil(me)
    made.hear(UP_UP, PROBERS, 0.0)
    made.looked(0.0, good=True)
    made.looked(0.1, good=True)
    assert made.up
    return made


# ── What probers say together ────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sights", "meant"),
    [
        ((), ProberConsensus.NOTHING),
        (UP_UP, ProberConsensus.UP),
        ((Sight("b", up=True),), ProberConsensus.UP),
        (DOWN_DOWN, ProberConsensus.DOWN),
        (SPLIT, ProberConsensus.SPLIT),
        ((Sight("z", up=True),), ProberConsensus.NOTHING),
        ((Sight("z", up=True), Sight("a", up=False)), ProberConsensus.DOWN),
    ],
)
def test_only_what_those_in_charge_say_counts(
    sights: tuple[Sight, ...], meant: ProberConsensus
) -> None:
    assert prober_consensus(sights, PROBERS) is meant


# ── One node ─────────────────────────────────────────────────────────────────


def test_a_worker_that_is_new_here_is_looked_at_at_once_whatever_others_say() -> None:
    for sights in ((), UP_UP, DOWN_DOWN, SPLIT):
        made = vigil()
        made.hear(sights, PROBERS, 0.0)
        assert made.due_s == 0.0
        assert not made.waits


def test_who_is_not_in_charge_relies_on_those_who_are() -> None:
    made = brought_up()
    assert made.due_s == NEVER
    made.hear(DOWN_DOWN, PROBERS, 5.0)
    assert not made.up
    assert made.waits
    made.hear(UP_UP, PROBERS, 9.0)
    assert not made.waits
    assert made.due_s == 9.0  # who answers there now is asked anew


def test_one_prober_that_says_up_is_enough_until_own_looks_say_otherwise() -> None:
    made = brought_up()
    made.hear(SPLIT, PROBERS, 5.0)
    assert made.up
    assert made.due_s == 5.0
    for at_s in (5.0, 5.3, 5.6):
        made.looked(at_s, good=False)
    assert not made.up
    made.hear(UP_UP, PROBERS, 8.0)
    # They agree again, and yet it cannot be reached from here: this node's own business.
    assert not made.up
    assert made.due_s == 8.0
    made.looked(8.0, good=True)
    made.looked(8.1, good=True)
    assert made.up
    assert made.due_s == NEVER


def test_where_nobody_fresh_says_anything_own_looks_count_every_interval() -> None:
    made = brought_up()
    made.hear((), PROBERS, 5.0)
    assert made.up
    made.looked(5.0, good=True)
    assert 1.6 <= made.due_s - 5.0 <= 2.4


def test_own_calls_that_find_nobody_make_it_look_and_are_nobody_elses_business() -> None:
    made = brought_up()
    made.doubt(5.0)
    assert made.due_s == 5.0
    assert made.up
    for at_s in (5.0, 5.3, 5.6):
        made.looked(at_s, good=False)
        assert made.due_s - at_s <= 0.3
    assert not made.up
    assert not made.waits


def test_what_all_call_down_is_tried_from_here_every_five_seconds_when_somebody_waits() -> None:
    made = brought_up()
    made.hear(DOWN_DOWN, PROBERS, 5.0)
    for at_s in (5.0, 6.0, 9.9):
        made.doubt(at_s)
        assert made.due_s == (5.0 if at_s == 5.0 else NEVER)
        if at_s == 5.0:
            made.looked(5.0, good=False)
        assert made.waits
    made.doubt(10.0)
    assert not made.waits
    made.looked(10.0, good=True)
    assert not made.up
    made.looked(10.1, good=True)
    assert made.up  # it works from here, and somebody needs it
    assert made.due_s < NEVER
    for at_s in (12.0, 12.2, 12.4):
        made.looked(at_s, good=False)
    assert not made.up
    assert made.waits


def test_who_comes_into_charge_looks_at_once_and_who_is_relieved_stops() -> None:
    made = brought_up()
    made.hear(UP_UP, ("a", "x"), 5.0)
    assert made.on_duty
    assert made.due_s == 5.0
    assert made.up
    made.looked(5.0, good=True)
    made.hear(UP_UP, PROBERS, 6.0)
    assert not made.on_duty
    assert made.due_s == NEVER
    assert made.up


def test_other_numbers_count_from_the_next_look_on() -> None:
    made = brought_up("a")
    made.hear((), PROBERS, 1.0)
    made.looked(1.0, good=True)
    made.retune(ProbeOptions(interval_s=0.5, down_after=1, up_after=1), 1.0)
    assert made.due_s <= 1.5
    made.looked(1.5, good=False)
    assert not made.up


# ── Many nodes ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("nodes", [4, 10, 20])
def test_a_worker_is_looked_at_twice_an_interval_however_many_nodes_there_are(nodes: int) -> None:
    fleet = 60
    watch = Watch(names(nodes), workers(fleet))
    watch.run(10)  # everybody brings everything up once
    watch.looks.clear()
    watch.run(60)
    intervals = 60 / OPTIONS.interval_s
    per_node = {node: watch.looks[node] / intervals for node in watch.nodes}
    assert sum(per_node.values()) == pytest.approx(2 * fleet, rel=0.05)
    mean = 2 * fleet / nodes
    # The share of one node is drawn: 2.5 standard deviations of it, at most.
    assert max(per_node.values()) <= mean + 2.5 * mean**0.5
    assert all(all(watch.up(worker).values()) for worker in watch.workers)


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_of_up_to_three_nodes_all_look(nodes: int) -> None:
    watch = Watch(names(nodes), workers(10))
    watch.run(10)
    watch.looks.clear()
    watch.run(60)
    assert sum(watch.looks.values()) == pytest.approx(30 * nodes * 10, rel=0.05)


def test_a_worker_that_dies_is_down_everywhere_by_the_word_of_two() -> None:
    dead: set[str] = set()
    watch = Watch(names(10), workers(20), lambda node, worker: worker not in dead)
    watch.run(10)
    dead.add(watch.workers[3])
    watch.looks.clear()
    watch.run(4)
    assert not any(watch.up(watch.workers[3]).values())
    assert all(all(watch.up(worker).values()) for worker in watch.workers if worker not in dead)
    # While the first prober says down and the second has not looked yet, the others look for themselves.
    others = sum(watch.looks.values()) - 20 * 2 * 4 / OPTIONS.interval_s
    assert others <= 10 * len(watch.nodes)
    watch.looks.clear()
    dead.clear()
    watch.run(8)
    assert all(watch.up(watch.workers[3]).values())


def test_a_broken_path_is_the_business_of_one_node() -> None:
    broken: set[tuple[str, str]] = set()
    watch = Watch(names(10), workers(12), lambda node, worker: (node, worker) not in broken)
    watch.run(10)
    worker = watch.workers[0]
    bystander = next(node for node in watch.nodes if node not in watch.in_charge(worker))
    broken.add((bystander, worker))
    watch.vigils[bystander, worker].doubt(watch.now_s)
    watch.run(5)
    assert watch.up(worker) == {node: node != bystander for node in watch.nodes}
    broken.clear()
    watch.run(5)
    assert all(watch.up(worker).values())


def test_a_prober_without_a_path_splits_the_word_and_everybody_looks_for_himself() -> None:
    broken: set[tuple[str, str]] = set()
    watch = Watch(names(10), workers(12), lambda node, worker: (node, worker) not in broken)
    watch.run(10)
    worker = watch.workers[0]
    prober = watch.in_charge(worker)[0]
    broken.add((prober, worker))
    watch.run(8)
    assert watch.up(worker) == {node: node != prober for node in watch.nodes}


def test_the_successor_of_a_dead_prober_looks_at_once_and_nothing_goes_down() -> None:
    watch = Watch(names(8), workers(40))
    watch.run(10)
    dead = watch.in_charge(watch.workers[0])[0]
    duties = [worker for worker in watch.workers if dead in watch.in_charge(worker)]
    before = {worker: set(watch.in_charge(worker)) for worker in duties}
    watch.die(dead)
    for worker in duties:
        (successor,) = set(watch.in_charge(worker)) - before[worker]
        assert watch.vigils[successor, worker].due_s <= watch.now_s
    for _ in range(40):
        watch.run(0.1)
        assert all(all(watch.up(worker).values()) for worker in watch.workers)


def test_two_dead_probers_at_once_leave_nobody_without_a_worker() -> None:
    watch = Watch(names(8), workers(40))
    watch.run(10)
    for node in list(watch.in_charge(watch.workers[0])):
        watch.die(node)
    for _ in range(60):
        watch.run(0.1)
        assert all(all(watch.up(worker).values()) for worker in watch.workers)
    watch.looks.clear()
    watch.run(20)
    assert sum(watch.looks.values()) == pytest.approx(10 * 2 * 40, rel=0.1)


def test_probers_that_fall_silent_are_not_believed_for_ever() -> None:
    dead: set[str] = set()
    watch = Watch(names(6), workers(5), lambda node, worker: worker not in dead)
    watch.run(10)
    worker = watch.workers[0]
    watch.mute.update(watch.in_charge(worker))
    dead.add(worker)
    watch.run(30)
    assert not any(watch.up(worker).values())


def test_a_node_that_joins_takes_its_share_and_finds_everything_up() -> None:
    watch = Watch(names(5), workers(40))
    watch.run(10)
    watch.nodes.append("n99")
    watch.join("n99")
    watch.run(5)
    assert all(watch.up(worker)["n99"] for worker in watch.workers)
    watch.looks.clear()
    watch.run(40)
    duties = sum("n99" in watch.in_charge(worker) for worker in watch.workers)
    assert duties > 0
    assert watch.looks["n99"] == pytest.approx(20 * duties, rel=0.1)
