"""One member after the other: are you there?"""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from smg_mesh.swim.effects import MemberSuspected, SetTimer, StreamPing, Timer
from smg_mesh.swim.members.round_trips import SAMPLES_MAX, RoundTrips
from smg_mesh.swim.messages import Ack, Gossip, Nack, Ping, PingRequest, Rank
from smg_mesh.swim.random_draws import below, sample, shuffle
from support.mesh.swim_stage import LAN, ME, Actor, Stage, messages


def probes(stage: Stage) -> list[Ping]:
    """The pings of the stage's own cycle: nobody is suspect, held or dead."""
    return stage.sent(Ping)


def test_one_probe_an_interval_and_each_member_once_a_round() -> None:
    stage = Stage()
    stage.meet("a", "b", "c", "d")
    stage.run(4 * 500)
    stage.clear()
    stage.run(20 * 500)
    counts = Counter(ping.target for ping in probes(stage))
    assert sum(counts.values()) == 20
    assert set(counts.values()) == {5}


def test_every_member_is_probed_within_twice_the_members_less_one() -> None:
    for seed in range(10):
        stage = Stage(seed=seed)
        stage.meet(*"abcdefgh")
        stage.clear()
        stage.run(40 * 500)
        targets = [ping.target for ping in probes(stage)]
        for name in "abcdefgh":
            places = [-1, *(place for place, target in enumerate(targets) if target == name)]
            gaps = [after - before for before, after in pairwise(places)]
            assert max(gaps) <= 2 * 9 - 1


def test_a_member_that_left_is_not_probed() -> None:
    stage = Stage()
    a, _ = stage.meet("a", "b")
    stage.hear(a, Gossip(), rumors=[a.claim(Rank.LEFT, incarnation=1)])
    stage.clear()
    stage.run(10_000)
    assert {ping.target for ping in probes(stage)} == {"b"}


def first_probe(stage: Stage, target: Actor) -> Ping:
    """Let the next probe begin and return it; nobody has answered it."""
    target.well = False
    stage.until(lambda: bool(stage.sent(Ping, target.address)), 20_000)
    return stage.sent(Ping, target.address)[-1]


def test_an_answered_probe_is_over_and_measured() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    stage.clear()
    ping = first_probe(stage, a)
    assert (ping.target, ping.target_boot, ping.claim) == ("a", 1, None)
    stage.run(7)
    sent_ms = stage.now_ms
    stage.hear(a, Ack(ping.nonce))
    assert stage.notes("probe_ok") == 1
    assert 0 <= stage.notes("rtt_us") <= 20_000
    assert stage.now_ms == sent_ms
    stage.run(300)
    assert stage.sent(PingRequest) == []
    member = stage.swim.member("a")
    assert member is not None
    assert member.heard_ms == sent_ms
    assert member.rtt_ms is not None


def test_after_the_timeout_three_relays_and_tcp_are_asked() -> None:
    stage = Stage(tcp=None)
    a, *_ = stage.meet("a", "b", "c", "d", "e")
    ping = first_probe(stage, a)
    stage.clear()
    stage.run(LAN.probe_timeout_ms + 1)
    requests = messages(stage.asked, PingRequest)
    assert len({to for to, _ in requests}) == 3
    assert a.address not in {to for to, _ in requests}
    assert {request for _, request in requests} == {PingRequest(ping.nonce, "a", 1, a.address)}
    assert [(asked.name, asked.boot) for asked in stage.of(StreamPing)] == [("a", 1)]


def test_an_answer_that_a_relay_brings_ends_the_probe_well() -> None:
    stage = Stage()
    a, b, *_ = stage.meet("a", "b", "c")
    ping = first_probe(stage, a)
    stage.run(LAN.probe_timeout_ms + 1)
    stage.clear()
    stage.hear(b, Ack(ping.nonce))
    assert (stage.notes("probe_ok"), stage.notes("probe_indirect_ok")) == (1, 1)
    stage.run(300)
    assert stage.rank("a") is Rank.ALIVE


def test_an_answer_over_tcp_alone_ends_it_well_and_is_counted() -> None:
    stage = Stage(tcp=True)
    (a,) = stage.meet("a")
    a.well = False
    stage.run(10_000)
    assert stage.rank("a") is Rank.ALIVE
    assert stage.notes("udp_blocked") == stage.notes("probe_ok") > 5


def test_silence_by_every_way_is_a_doubt() -> None:
    stage = Stage()
    a, *_ = stage.meet("a", "b", "c")
    first_probe(stage, a)
    stage.run(600)
    (event,) = stage.of(MemberSuspected)
    assert (event.member.name, event.why) == ("a", "it does not answer")
    assert stage.notes("accusation_sent") == 1


def test_relays_that_report_back_show_that_it_is_not_us() -> None:
    heard, deaf = Stage(), Stage()
    for stage in (heard, deaf):
        a, *others = stage.meet("a", "b", "c", "d")
        for other in others:
            other.well = stage is heard
        first_probe(stage, a)
        stage.run(520)
    assert heard.swim.health_score == 0
    assert deaf.swim.health_score >= 3


def test_probes_slow_down_while_this_node_is_unwell() -> None:
    stage = Stage()
    met = stage.meet("a", "b", "c", "d")
    for actor in met:
        actor.well = False
    stage.run(20_000)
    assert stage.swim.health_score == 7
    stage.clear()
    stage.run(16_000)
    assert stage.notes("probe_failed") + stage.notes("probe_void") <= 16_000 // (8 * 500) + 1


def test_a_probe_of_a_member_that_spoke_up_meanwhile_proves_nothing() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    first_probe(stage, a)
    a.incarnation = 1
    stage.hear(a)
    stage.clear()
    stage.run(600)
    assert stage.notes("probe_void") >= 1
    assert stage.rank("a") is Rank.ALIVE


def test_a_late_verdict_proves_nothing() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    stage.clear()
    first_probe(stage, a)
    cycle = [effect for effect in stage.of(SetTimer) if effect.timer.kind == "probe"][-1]
    stage.did(stage.swim.handle_timer(cycle.timer, now_ms=cycle.due_ms + 200))
    assert stage.notes("probe_void") == 1
    assert stage.rank("a") is Rank.ALIVE


def test_nacks_of_others_and_answers_to_nothing_change_nothing() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    stage.clear()
    stage.hear(a, Nack(12345))
    stage.hear(a, Ack(12345))
    assert stage.asked == []


# ── For others ───────────────────────────────────────────────────────────────


def relaying(stage: Stage) -> tuple[Actor, Actor, Ping]:
    asker, target = stage.meet("asker", "target")
    stage.clear()
    stage.hear(asker, PingRequest(77, "target", 1, target.address))
    ((to, ping),) = messages(stage.asked, Ping)
    assert (to, ping.target, ping.target_boot) == (target.address, "target", 1)
    return asker, target, ping


def test_a_relay_passes_the_answer_on() -> None:
    stage = Stage()
    asker, target, ping = relaying(stage)
    stage.clear()
    stage.hear(asker, Ack(ping.nonce))
    assert stage.sent(Ack) == []  # Only the target's own word counts.
    stage.hear(target, Ack(ping.nonce))
    assert stage.sent(Ack, asker.address) == [Ack(77)]
    stage.run(400)
    assert stage.sent(Nack) == []
    stage.hear(target, Ack(ping.nonce))
    assert len(stage.sent(Ack)) == 1


def test_a_relay_that_hears_nothing_says_so_in_time_and_still_passes_a_late_answer_on() -> None:
    stage = Stage()
    asker, target, ping = relaying(stage)
    stage.clear()
    stage.run(round(0.8 * LAN.probe_timeout_ms) - 1)
    assert stage.sent(Nack) == []
    stage.run(1)
    assert stage.sent(Nack, asker.address) == [Nack(77)]
    stage.hear(target, Ack(ping.nonce))
    assert stage.sent(Ack, asker.address) == [Ack(77)]


def test_a_relay_that_doubts_the_target_lets_it_refute() -> None:
    stage = Stage()
    asker, target = stage.meet("asker", "target")
    doubt = target.claim(Rank.SUSPECT, accuser="asker")
    stage.hear(asker, rumors=[doubt])
    stage.clear()
    stage.hear(asker, PingRequest(77, "target", 1, target.address))
    assert stage.sent(Ping, target.address)[0].claim == doubt


# ── Being asked ──────────────────────────────────────────────────────────────


def test_a_ping_for_this_life_is_answered_where_it_came_from() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    stage.clear()
    elsewhere = a.address._replace(port=9)
    stage.hear(a, Ping(5, "me", 100), sender=elsewhere)
    assert stage.sent(Ack, elsewhere) == [Ack(5)]


@pytest.mark.parametrize(("name", "boot"), [("you", 100), ("me", 99), ("me", 101)])
def test_a_ping_for_somebody_else_is_not_answered(name: str, boot: int) -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    stage.clear()
    stage.hear(a, Ping(5, name, boot))
    assert stage.sent(Ack) == []
    assert stage.notes("misdirected") == 1


def test_stale_and_unknown_timers_do_nothing() -> None:
    stage = Stage()
    a, _ = stage.meet("a", "b")
    stage.hear(a, rumors=[stage.actors[a.address].claim(Rank.SUSPECT, accuser="b")])
    stage.run(3_000)
    timers = {effect.timer for effect in stage.of(SetTimer)}
    stage.clear()
    kinds = {timer.kind for timer in timers}
    assert kinds >= {"probe", "direct", "gossip", "heal", "exchange", "doubt"}
    for kind in sorted(kinds | {"namesake", "hold", "nack", "farewell", "nonsense"}):
        for token in (0, -1, 1 << 40):
            stage.did(stage.swim.handle_timer(Timer(kind, "a", token), now_ms=stage.now_ms))
            stage.did(stage.swim.handle_timer(Timer(kind, "nobody", token), now_ms=stage.now_ms))
    assert stage.asked == []


# ── What it is made of ───────────────────────────────────────────────────────


def test_how_long_to_wait_for_an_answer() -> None:
    trips = RoundTrips()
    assert (trips.wait_ms(200), trips.median_ms()) == (200, None)
    for _ in range(8):
        trips.add(30)
    assert trips.wait_ms(200) == 90
    trips.add(1_000)
    assert (trips.wait_ms(200), trips.median_ms()) == (200, 30.0)
    for _ in range(SAMPLES_MAX):
        trips.add(1)
    assert (trips.wait_ms(200), trips.median_ms()) == (50, 1.0)
    trips.add(4)
    trips.add(5)
    assert trips.median_ms() == 1.0


def test_draws_are_fair_and_bounded() -> None:
    rng = Random(3)
    assert {below(rng, 4) for _ in range(100)} == {0, 1, 2, 3}
    items = list(range(1000))
    picked = sample(rng, items, 3, lambda item: item % 2 == 0)
    assert len(picked) == len(set(picked)) == 3
    assert all(item % 2 == 0 for item in picked)
    assert sample(rng, items, 3, lambda item: False) == []
    assert sorted(sample(rng, [1, 2, 3], 5, lambda item: True)) == [1, 2, 3]
    shuffle(rng, items)
    assert sorted(items) == list(range(1000)) != items


def test_this_node_does_not_probe_itself() -> None:
    stage = Stage()
    stage.run(5_000)
    assert stage.sent(Ping) == []
    assert stage.swim.address == ME
