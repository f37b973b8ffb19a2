"""The dead are looked at, told, forgotten; partitions heal."""

import pytest

from smg_mesh.swim.effects import MemberDown, MemberUp
from smg_mesh.swim.messages import Ack, Hello, Ping, Rank
from support.mesh.small_cluster import SmallCluster
from support.mesh.swim_stage import LAN, Actor, Stage, messages


def dead(stage: Stage) -> tuple[Actor, Actor]:
    a, b = stage.meet("a", "b")
    stage.hear(b, rumors=[a.claim(Rank.DEAD, accuser="b")])
    stage.run(3_000)
    stage.clear()
    return a, b


def test_the_dead_are_pinged_with_what_is_held_against_them() -> None:
    stage = Stage()
    a, _ = dead(stage)
    a.well = False
    stage.run(20_000)
    pings = stage.sent(Ping, a.address)
    assert 15 <= len(pings) <= 20
    assert pings[0].claim == a.claim(Rank.DEAD, accuser="b")
    assert stage.notes("healing") == len(pings)


def test_those_who_left_are_left_alone() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.hear(b, rumors=[a.claim(Rank.LEFT, incarnation=1)])
    stage.clear()
    stage.run(20_000)
    assert stage.sent(Ping, a.address) == []


def test_a_dead_member_that_refutes_in_its_answer_is_alive_and_conversed_with() -> None:
    stage = Stage()
    a, _ = dead(stage)
    a.incarnation = 1
    stage.hear(a, Ack(5))
    assert stage.rank("a") is Rank.ALIVE
    assert stage.exchanges() == [("a", "heal")]


def test_an_answer_without_refutation_does_not_raise_the_dead() -> None:
    stage = Stage()
    a, _ = dead(stage)
    stage.hear(a, Ack(5))
    assert stage.rank("a") is Rank.DEAD


def test_many_returns_at_once_start_one_exchange() -> None:
    stage = Stage()
    met = stage.meet("a", "b", "c", "d", "e")
    for actor in met[1:]:
        stage.hear(met[0], rumors=[actor.claim(Rank.DEAD, accuser="a")])
    stage.clear()
    for actor in met[1:]:
        actor.incarnation = 1
        stage.hear(actor)
    assert len(stage.exchanges()) == 1


def test_after_a_day_a_dead_member_is_forgotten_and_new_when_it_comes_back() -> None:
    stage = Stage()
    a, _ = dead(stage)
    a.well = False
    stage.now_ms += LAN.forget_after_ms
    stage.run(5_000)
    assert stage.rank("a") is None
    assert stage.notes("forgotten") == 1
    stage.clear()
    stage.hear(a)
    stage.hear(a, rumors=[a.claim()])
    assert [up.returned for up in stage.of(MemberUp)] == [False]


def test_where_the_forgotten_listened_is_greeted_in_turn_for_a_week() -> None:
    stage = Stage()
    met = stage.meet("a", "b", "c", "left")
    for actor, rank in ((met[0], Rank.DEAD), (met[1], Rank.DEAD), (met[3], Rank.LEFT)):
        stage.hear(met[2], rumors=[actor.claim(rank, accuser="c")])
        actor.well = False
    stage.now_ms += LAN.forget_after_ms
    stage.run(5_000)
    stage.clear()
    stage.run(20_000)
    greeted = [stage.actors[to].name for to, hello in messages(stage.asked, Hello) if hello.answer]
    assert greeted[:4] in (["a", "b", "a", "b"], ["b", "a", "b", "a"])
    # One that answers is a member again, and new.
    stage.hear(met[0], Hello(met[0].claim(), False))
    assert stage.rank("a") is Rank.ALIVE
    stage.clear()
    stage.run(10_000)
    assert {to for to, hello in messages(stage.asked, Hello) if hello.answer} == {met[1].address}
    stage.now_ms += 7 * 86_400_000
    stage.run(5_000)
    stage.clear()
    stage.run(10_000)
    assert not [hello for hello in stage.sent(Hello) if hello.answer]


def test_an_operator_may_forget_the_gone_only() -> None:
    stage = Stage()
    dead(stage)
    stage.did(stage.swim.forget("a", now_ms=stage.now_ms))
    assert stage.rank("a") is None
    with pytest.raises(KeyError):
        stage.swim.forget("a", now_ms=stage.now_ms)
    with pytest.raises(ValueError, match="not gone"):
        stage.swim.forget("b", now_ms=stage.now_ms)


@pytest.mark.parametrize(("sides", "seed"), [((5, 5), 1), ((1, 4), 2), ((2, 1), 3), ((1, 1), 4)])
def test_a_partition_heals_by_itself(sides: tuple[int, int], seed: int) -> None:
    cluster = SmallCluster(seed=seed)
    nodes = cluster.joined(sum(sides))
    left = [node.address for node in nodes[: sides[0]]]
    cluster.cut = lambda sender, to: (sender in left) != (to in left)
    cluster.run(60_000)
    assert not cluster.agree()
    cluster.cut = lambda sender, to: False
    assert cluster.until(cluster.agree, 5_000) <= 5_000
    cluster.run(30_000)
    announced = [[row for row in node.swim.members() if row.announced] for node in nodes]
    assert [len(rows) for rows in announced] == [sum(sides)] * sum(sides)


def test_islands_whose_rows_were_forgotten_find_each_other_by_greeting() -> None:
    cluster = SmallCluster()
    left, right = cluster.joined(3), [cluster.add(name) for name in ("x", "y", "z")]
    for node in right[1:]:
        cluster.do(node, node.swim.greet([right[0].address], now_ms=cluster.now_ms))
    cluster.run(5_000)
    cluster.do(left[1], left[1].swim.greet([right[2].address], now_ms=cluster.now_ms))
    assert cluster.until(cluster.agree, 5_000) <= 5_000


def test_an_asymmetric_cut_between_two_kills_nobody() -> None:
    cluster = SmallCluster()
    nodes = cluster.joined(5)
    pair = {nodes[0].address, nodes[1].address}
    cluster.cut = lambda sender, to: {sender, to} == pair
    cluster.run(120_000)
    assert not any(isinstance(event, MemberDown) for node in nodes for _, event in node.events)
