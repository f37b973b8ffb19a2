"""Members that die and come back."""

import pytest

from smg_mesh.swim.effects import MemberChanged, MemberDown, MemberUp
from smg_mesh.swim.members.flap_damping import Flaps, hold_down_ms
from smg_mesh.swim.messages import Hello, Rank
from support.mesh.swim_stage import Actor, Stage


def test_the_penalty_grows_with_returns_and_halves_with_time() -> None:
    flaps = Flaps()
    assert flaps.penalty(60_000, now_ms=5) == 0.0
    assert flaps.add(60_000, now_ms=0) == 1.0
    assert flaps.penalty(60_000, now_ms=60_000) == pytest.approx(0.5)
    assert flaps.add(60_000, now_ms=60_000) == pytest.approx(1.5)
    assert flaps.penalty(60_000, now_ms=3_600_000) == 0.0


def test_a_flapping_member_is_doubted_longer_but_at_most_eight_times() -> None:
    flaps = Flaps()
    assert flaps.patience(60_000, now_ms=0) == 1.0
    flaps.add(60_000, now_ms=0)
    assert flaps.patience(60_000, now_ms=0) == 2.0
    for _ in range(20):
        flaps.add(60_000, now_ms=0)
    assert flaps.patience(60_000, now_ms=0) == 8.0


@pytest.mark.parametrize(
    ("penalty", "expected_ms"),
    [(0.5, 0), (1.0, 5_000), (2.0, 10_000), (3.5, 28_284), (6.0, 120_000)],
)
def test_the_hold_down_doubles_up_to_two_minutes(penalty: float, expected_ms: int) -> None:
    assert hold_down_ms(penalty, 5_000, 120_000) == expected_ms


def dead_and_back(stage: Stage, actor: Actor, by: Actor) -> None:
    stage.hear(by, rumors=[actor.claim(Rank.DEAD, accuser=by.name)])
    actor.incarnation += 1
    stage.hear(actor, Hello(actor.claim(), False))


def test_the_table_takes_a_return_at_once_and_subscribers_hear_of_it_later() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.clear()
    dead_and_back(stage, a, b)
    assert stage.rank("a") is Rank.ALIVE
    member = stage.swim.member("a")
    assert member is not None
    assert not member.announced
    assert len(stage.of(MemberDown)) == 1
    assert (stage.notes("flap"), stage.notes("held")) == (1, 1)
    stage.run(4_990)
    assert stage.of(MemberUp) == []
    stage.run(1_100)
    (up,) = stage.of(MemberUp)
    assert up.returned
    assert up.member.announced


def test_a_member_that_does_not_answer_is_not_announced() -> None:
    stage = Stage(tcp=True)  # Nobody doubts it: TCP answers.
    a, b = stage.meet("a", "b")
    dead_and_back(stage, a, b)
    stage.clear()
    a.well = False
    stage.run(60_000)
    assert stage.of(MemberUp) == []
    a.well = True
    stage.run(20_000)
    assert len(stage.of(MemberUp)) == 1


def test_a_doubt_begins_the_hold_down_anew() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    dead_and_back(stage, a, b)
    stage.clear()
    stage.run(4_000)
    stage.hear(b, rumors=[a.claim(Rank.SUSPECT, accuser="b")])
    a.incarnation += 1
    stage.hear(a)
    stage.run(4_990)
    assert stage.of(MemberUp) == []
    stage.run(1_100)
    assert len(stage.of(MemberUp)) == 1


def test_a_sick_member_is_announced_down_once() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    stage.clear()
    for _ in range(10):
        dead_and_back(stage, a, b)
        stage.run(4_000)
    assert len(stage.of(MemberDown)) == 1
    assert stage.of(MemberUp) == []
    assert stage.notes("flap") == 10
    stage.run(130_000)
    assert len(stage.of(MemberUp)) == 1


def test_a_later_life_ends_the_hold_down() -> None:
    stage = Stage()
    a, b = stage.meet("a", "b")
    dead_and_back(stage, a, b)
    stage.clear()
    a.boot, a.incarnation = 2, 0
    stage.hear(a, Hello(a.claim(), False))
    assert [up.returned for up in stage.of(MemberUp)] == [True]
    stage.run(10_000)
    assert len(stage.of(MemberUp)) == 1
    assert stage.of(MemberChanged) == []


def test_returns_make_doubts_last_longer() -> None:
    steady, flapping = Stage(), Stage()
    spans = []
    for stage, returns in ((steady, 0), (flapping, 2)):
        a, b = stage.meet("a", "b")
        for _ in range(returns):
            dead_and_back(stage, a, b)
        stage.hear(b, rumors=[a.claim(Rank.SUSPECT, accuser="b")])
        stage.hear(b, rumors=[a.claim(Rank.SUSPECT, accuser="c")])
        a.well = False
        spans.append(stage.until(lambda stage=stage: stage.rank("a") is Rank.DEAD, 30_000))  # type: ignore[misc]  # bound now
    assert spans[1] == pytest.approx(4 * 1_500 + 200, abs=50)
    assert spans[0] == pytest.approx(1_500 + 200, abs=50)
