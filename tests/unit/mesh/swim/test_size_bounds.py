"""Nothing grows without end."""

from dataclasses import replace

import pytest

from smg_mesh.swim.detection.indirect_probes import RELAYED_MAX
from smg_mesh.swim.detection.tcp_pings import STREAM_PINGS_MAX
from smg_mesh.swim.members import member_table as members
from smg_mesh.swim.messages import Address, Gossip, Hello, PingRequest, Rank
from support.mesh.swim_stage import LAN, Actor, Stage

MANY = 10_000


def test_ten_thousand_restarts_leave_one_row() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    for boot in range(2, MANY):
        a.boot = boot
        a.address = Address("10.0.2.1", 1 + boot % 60_000)
        stage.hear(a, Hello(a.claim(), False))
        stage.clear()
    assert [row.name for row in stage.swim.rows()] == ["a", "me"]
    parts = stage.swim._parts
    assert len(parts.prober._round) == 1
    assert parts.voice.rumors.counts()[0] <= 2


def test_ten_thousand_names_that_went_leave_as_many_rows_as_may_be_kept() -> None:
    stage = Stage(options=replace(LAN, rows_max=500))
    (a,) = stage.meet("a")
    for number in range(MANY):
        other = Actor(f"x{number}", Address("10.0.2.1", 1 + number % 60_000))
        stage.hear(a, Gossip(), rumors=[other.claim(), other.claim(Rank.LEFT, incarnation=1)])
        if number % 100 == 0:
            stage.run(500)
        stage.clear()
    parts = stage.swim._parts
    assert len(stage.swim.rows()) == 502
    assert parts.members.aging_count == 500
    assert len(parts.members.tags) == 501
    assert len(parts.members._forgotten) <= 500
    stage.run(1_000)
    assert len(parts.prober._round) <= 500
    assert parts.voice.rumors.counts()[0] <= 64


def test_names_without_address_are_bounded_too() -> None:
    stage = Stage(options=replace(LAN, rows_max=500))
    (a,) = stage.meet("a")
    for number in range(2_000):
        other = Actor(f"x{number}", a.address)
        stage.hear(a, Gossip(), rumors=[other.claim(Rank.LEFT)])
    assert len(stage.swim.rows()) == 502


def test_a_cluster_may_only_be_so_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "PRESENT_MAX", 50)
    stage = Stage()
    (a,) = stage.meet("a")
    for number in range(100):
        other = Actor(f"x{number}", Address("10.0.2.1", 1 + number))
        stage.hear(a, rumors=[other.claim()])
    assert len(stage.swim.members()) == 51


def test_probes_for_others_are_bounded() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    for nonce in range(2 * RELAYED_MAX):
        stage.hear(a, PingRequest(nonce, "b", 1, b.address))
        stage.clear()
    relays = stage.swim._parts.relays
    assert len(relays) <= RELAYED_MAX
    assert len(relays._tokens) <= RELAYED_MAX
    stage.run(10_000)
    stage.hear(a, PingRequest(1, "b", 1, b.address))
    assert len(relays) == 1


def test_pings_over_tcp_are_bounded_and_lost_ones_are_given_up() -> None:
    stage = Stage(tcp=None)
    streams = stage.swim._parts.streams
    for nonce in range(100):
        streams.ask(
            "chance", "a", 1, Address("10.0.2.1", 1), nonce=nonce, deadline_ms=200, now_ms=0
        )
    assert len(streams) == STREAM_PINGS_MAX
    streams.ask("chance", "a", 1, Address("10.0.2.1", 1), nonce=100, deadline_ms=200, now_ms=801)
    assert len(streams) == 1


def test_the_gossip_timer_rests_while_there_is_nobody_or_nothing() -> None:
    stage = Stage()
    stage.clear()
    stage.run(60_000)
    kinds = {effect.timer.kind for effect in stage.asked if hasattr(effect, "timer")}
    assert "gossip" not in kinds
    stage.meet("a")
    stage.run(5_000)
    stage.clear()
    stage.run(20_000)
    kinds = {effect.timer.kind for effect in stage.asked if hasattr(effect, "timer")}
    assert "gossip" not in kinds
