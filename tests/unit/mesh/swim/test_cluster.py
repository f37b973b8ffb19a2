"""A few cores together, on links that lose nothing: the figures of good weather."""

from statistics import median

import pytest

from smg_mesh.swim.effects import (
    MemberChanged,
    MemberDown,
    MemberSuspected,
    MemberUp,
    NewsReceived,
    Superseded,
)
from smg_mesh.swim.messages import Rank
from support.mesh.small_cluster import SmallCluster


def test_forty_members_meet_through_one_within_three_seconds() -> None:
    cluster = SmallCluster()
    nodes = [cluster.add(f"n{number}") for number in range(40)]
    for node in nodes[1:]:
        cluster.do(node, node.swim.greet([nodes[0].address], now_ms=cluster.now_ms))
    assert cluster.until(cluster.agree, 3_000) <= 3_000
    ups = [event for _, event in nodes[7].events if isinstance(event, MemberUp)]
    assert len(ups) == 39


def crash(seed: int) -> tuple[int, int]:
    """Return after how many milliseconds the first and the last noticed a crash."""
    cluster = SmallCluster(seed=seed)
    *watchers, victim = cluster.joined(5 + seed % 6)
    cluster.run(137 * seed)
    victim.up = False
    name = victim.swim.name
    first_ms = cluster.until(
        lambda: any(cluster.rank(node, name) is Rank.DEAD for node in watchers), 10_000
    )
    later_ms = cluster.until(lambda: cluster.all_hold(Rank.DEAD, name), 500)
    downs = [event for _, event in watchers[0].events if isinstance(event, MemberDown)]
    assert [down.member.name for down in downs] == [name]
    return first_ms, first_ms + later_ms


def test_a_crash_is_noticed_in_two_and_a_half_seconds_by_all() -> None:
    noticed = [crash(seed) for seed in range(15)]
    assert median(first_ms for first_ms, _ in noticed) <= 3_000
    assert max(all_ms for _, all_ms in noticed) <= 4_500


def test_a_restart_at_another_address_is_alive_everywhere_within_a_second() -> None:
    cluster = SmallCluster()
    nodes = cluster.joined(10)
    nodes[4].up = False
    again = cluster.add("n4", host="10.0.9.9", boot=2)
    cluster.do(again, again.swim.greet([nodes[0].address], now_ms=cluster.now_ms))
    others = [node for node in nodes if node is not nodes[4]]

    def known() -> bool:
        rows = [node.swim.member("n4") for node in others]
        return all(row is not None and row.address == again.address for row in rows)

    assert cluster.until(known, 1_000) <= 1_000
    cluster.run(20_000)
    for node in others:
        changes = [event for _, event in node.events if isinstance(event, MemberChanged)]
        assert [(change.member.boot, change.restarted) for change in changes] == [(2, True)]
        assert not any(isinstance(event, MemberDown) for _, event in node.events)


@pytest.mark.parametrize("seed", [0, 4])
def test_a_stranger_under_a_taken_name_gives_way_and_nobody_else_notices(seed: int) -> None:
    """Seed 4 is the very process that has the name."""
    cluster = SmallCluster()
    nodes = cluster.joined(5)
    boots = [node.swim.boot for node in nodes]
    stranger = cluster.add("n4", host="10.0.9.9", boot=0)
    cluster.do(stranger, stranger.swim.greet([nodes[seed].address], now_ms=cluster.now_ms))
    assert cluster.until(lambda: stranger.swim.superseded, 1_000) <= 1_000
    assert [event for _, event in stranger.events if isinstance(event, Superseded)] == [
        Superseded(boots[4], nodes[4].address)
    ]
    cluster.run(30_000)
    assert [node.swim.boot for node in nodes] == boots
    assert not any(node.swim.superseded for node in nodes)
    changes = [
        event
        for node in nodes
        for at_ms, event in node.events
        if at_ms > 6_000 and isinstance(event, MemberChanged | MemberDown | MemberSuspected)
    ]
    assert changes == []


def test_two_strangers_who_meet_late_are_one_and_the_other_stays_away() -> None:
    cluster = SmallCluster()
    one, other = cluster.add("web", boot=300), cluster.add("web", boot=200)
    third = cluster.add("db", boot=100)
    for node in (one, other):
        cluster.do(third, third.swim.greet([node.address], now_ms=cluster.now_ms))
    cluster.run(10_000)
    assert (one.swim.superseded, other.swim.superseded) == (False, True)
    assert one.swim.boot == 300
    row = third.swim.member("web")
    assert row is not None
    assert (row.boot, row.address, row.rank) == (300, one.address, Rank.ALIVE)


def test_of_two_processes_with_one_name_the_one_with_the_smaller_boot_steps_down() -> None:
    cluster = SmallCluster()
    nodes = cluster.joined(5)
    twin = cluster.add("n4", host="10.0.9.9", boot=2)
    cluster.do(twin, twin.swim.greet([nodes[0].address], now_ms=cluster.now_ms))
    cluster.until(lambda: nodes[4].swim.superseded, 3_000)
    assert [event for _, event in nodes[4].events if isinstance(event, Superseded)] == [
        Superseded(2, twin.address)
    ]
    cluster.run(30_000)
    assert not twin.swim.superseded
    assert all(
        row is not None and row.boot == 2 for row in (node.swim.member("n4") for node in nodes[:4])
    )


def test_news_reach_everybody_at_once() -> None:
    cluster = SmallCluster()
    nodes = cluster.joined(20)
    cluster.run(3_000)
    cluster.do(nodes[3], nodes[3].swim.say("load", "gpu", b"7", now_ms=cluster.now_ms))

    def heard() -> bool:
        return all(
            any(isinstance(event, NewsReceived) for _, event in node.events)
            for node in nodes
            if node is not nodes[3]
        )

    assert cluster.until(heard, 1_000) <= 500


def test_a_quiet_cluster_sends_two_packets_a_second_and_doubts_nobody() -> None:
    cluster = SmallCluster()
    nodes = cluster.joined(10)
    before = cluster.packets
    cluster.run(60_000)
    per_node_and_second = (cluster.packets - before) / 10 / 60
    assert per_node_and_second <= 4.2  # A ping and an answer each way.
    assert not any(isinstance(event, MemberSuspected) for node in nodes for _, event in node.events)
    talked = {why for node in nodes for at_ms, _, why in node.exchanges if at_ms > 10_000}
    assert talked <= {"periodic"}
