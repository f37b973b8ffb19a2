"""Is it me? The score, isolation, and limits on accusations."""

from dataclasses import replace

from smg_mesh.swim.detection.local_health import Health
from smg_mesh.swim.effects import Isolated, MemberDown, MemberSuspected
from smg_mesh.swim.messages import Ack, Ping, Rank
from smg_mesh.swim.rate_limits import ORIGINS_MAX, Bucket, Buckets, OncePer
from support.mesh.swim_stage import LAN, Stage


def test_the_score_stays_between_0_and_7() -> None:
    health = Health()
    health.probe_ok()
    assert health.score == 0
    for _ in range(9):
        health.stalled()
    assert health.score == 7
    health.probe_ok()
    assert health.score == 6


def test_missing_nacks_count_and_nacks_that_came_do_not() -> None:
    health = Health()
    health.probe_failed(relays=3, nacks=3)
    assert health.score == 0
    health.probe_failed(relays=3, nacks=1)
    assert health.score == 2
    health.probe_failed(relays=0, nacks=0)
    assert health.score == 3
    health.refuted()
    assert health.score == 4


def test_isolated_is_who_failed_more_than_half_with_silent_relays() -> None:
    health = Health()
    for _ in range(5):
        health.probe_failed(relays=3, nacks=0)
    assert not health.isolated
    health.probe_failed(relays=3, nacks=0)
    assert health.isolated


def test_relays_that_speak_or_do_not_exist_prove_that_it_is_not_us() -> None:
    health = Health()
    for _ in range(20):
        health.probe_failed(relays=3, nacks=1)
        health.probe_failed(relays=0, nacks=0)
    assert not health.isolated


def test_three_good_probes_end_isolation() -> None:
    health = Health()
    for _ in range(10):
        health.probe_failed(relays=1, nacks=0)
    for _ in range(2):
        health.probe_ok()
    assert health.isolated
    health.probe_failed(relays=1, nacks=0)
    for _ in range(3):
        assert health.isolated
        health.probe_ok()
    assert not health.isolated


def test_an_isolated_node_accuses_and_buries_nobody_and_says_so() -> None:
    stage = Stage()
    met = stage.meet(*"abcdefgh")
    stage.run(3_000)
    for actor in met:
        actor.well = False
    stage.until(lambda: stage.swim.isolated, 60_000)
    assert stage.of(Isolated) == [Isolated(True)]
    stage.clear()
    stage.run(120_000)
    assert not stage.of(MemberSuspected)
    assert not stage.of(MemberDown)
    assert stage.notes("accusation_withheld", "isolated") > 0
    stage.hear(met[0], Ping(4, "me", 100))
    assert stage.sent(Ack) == [Ack(4)]
    for actor in met:
        actor.well = True
    stage.run(60_000)
    assert stage.of(Isolated) == [Isolated(False)]
    assert not stage.swim.isolated


def test_two_nodes_are_enough_to_notice_a_death() -> None:
    stage = Stage()
    (a,) = stage.meet("a")
    a.well = False
    stage.run(15_000)
    assert stage.rank("a") is Rank.DEAD
    assert stage.of(Isolated) == []


def test_own_accusations_are_limited() -> None:
    stage = Stage(options=replace(LAN, accusations_per_s=0.0, accusations_burst=2))
    met = stage.meet(*"abcdefgh")
    for actor in met[:4]:
        actor.well = False
    stage.run(60_000)
    assert stage.notes("accusation_sent") == 2
    assert stage.notes("accusation_withheld", "rate") > 0


def test_nobody_is_believed_more_than_so_many_accusations_a_second() -> None:
    stage = Stage()
    names = [f"n{number:02}" for number in range(40)]
    met = stage.meet("liar", "other", *names)
    liar, other, *rest = met
    for target in rest:
        stage.hear(other, rumors=[target.claim(Rank.SUSPECT, accuser="liar")])
    assert stage.notes("suspected") == 20
    assert stage.notes("accusation_ignored", "liar") == 20
    # Whoever else says it is believed, whoever carries it.
    stage.hear(liar, rumors=[rest[-1].claim(Rank.SUSPECT, accuser="other")])
    assert stage.rank("n39") is Rank.SUSPECT


def test_what_is_no_news_costs_no_accuser_anything() -> None:
    stage = Stage()
    target, other = stage.meet("target", "other")
    for _ in range(100):
        stage.hear(other, rumors=[target.claim(Rank.SUSPECT, accuser="other")])
    assert stage.notes("accusation_ignored") == 0


def test_buckets_fill_with_time_and_no_further() -> None:
    bucket = Bucket(2.0, 3, now_ms=0)
    assert [bucket.take(now_ms=0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(now_ms=499)
    assert bucket.take(now_ms=500)
    assert [bucket.take(now_ms=60_000) for _ in range(4)] == [True, True, True, False]


def test_limits_remember_a_bounded_number_of_origins() -> None:
    buckets, once = Buckets(1.0), OncePer[int](1_000)
    for number in range(3 * ORIGINS_MAX):
        assert buckets.take(str(number), now_ms=0)
        assert once.take(number, now_ms=0)
    assert len(buckets) == len(once) == ORIGINS_MAX
    assert not once.take(3 * ORIGINS_MAX - 1, now_ms=999)
    assert once.take(3 * ORIGINS_MAX - 1, now_ms=1_000)
