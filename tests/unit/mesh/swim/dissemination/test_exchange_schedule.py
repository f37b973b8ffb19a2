"""Anti-entropy: when, with whom, how many at a time; and what rows of others do."""

import pytest

from smg_mesh.swim.dissemination.exchange_schedule import AGREED_EVERY, WAITING_MAX
from smg_mesh.swim.effects import MemberDown, MemberUp
from smg_mesh.swim.messages import Accusation, Claim, Rank
from support.mesh.swim_stage import Actor, Stage

OTHER = b"another digest!!"


def met(stage: Stage, count: int) -> list[Actor]:
    actors = stage.meet(*(f"n{number:02}" for number in range(count)))
    stage.run(4_000)
    stage.clear()
    return actors


def agreeing(stage: Stage, count: int) -> list[Actor]:
    actors = met(stage, count)
    for actor in actors:
        stage.hear(actor)
    stage.clear()
    return actors


def differ(stage: Stage, actors: list[Actor]) -> None:
    for _ in range(2):
        for actor in actors:
            stage.hear(actor, digest=OTHER)
        stage.now_ms += 1_000


@pytest.mark.parametrize(("count", "lasts_ms"), [(1, 700), (70, 1_000)])
def test_a_difference_that_lasts_longer_than_rumors_travel_is_talked_about(
    count: int, lasts_ms: int
) -> None:
    stage = Stage()
    a, *_ = agreeing(stage, count)
    stage.hear(a, digest=OTHER)
    stage.now_ms += lasts_ms - 1
    stage.hear(a, digest=OTHER)
    assert stage.exchanges() == []
    stage.now_ms += 1
    stage.hear(a, digest=OTHER)
    assert stage.exchanges() == [(a.name, "digest")]


@pytest.mark.parametrize(("count", "asked"), [(3, True), (70, False)])
def test_who_differs_from_everybody_asks_the_next_one_in_a_small_cluster(
    count: int, asked: bool
) -> None:
    stage = Stage()
    a, b, c, *_ = agreeing(stage, count)
    for actor in (a, b):
        stage.hear(actor, digest=OTHER)
        stage.now_ms += 500
    stage.hear(c, digest=OTHER)
    assert stage.exchanges() == ([(c.name, "digest")] if asked else [])


def test_one_member_that_agrees_says_that_it_is_not_us_who_missed_something() -> None:
    stage = Stage()
    a, b, c = met(stage, 3)
    stage.hear(a, digest=OTHER)
    stage.now_ms += 500
    stage.hear(b)
    stage.now_ms += 500
    stage.hear(c, digest=OTHER)
    assert stage.exchanges() == []


def test_a_difference_that_passes_is_not() -> None:
    stage = Stage()
    (a,) = met(stage, 1)
    stage.hear(a, digest=OTHER)
    stage.now_ms += 900
    stage.hear(a)
    stage.now_ms += 900
    stage.hear(a, digest=OTHER)
    assert stage.exchanges() == []


def test_documents_count_as_well() -> None:
    stage = Stage()
    (a,) = met(stage, 1)
    same = stage.digest16()
    stage.swim.set_document_digest(b"document")
    for _ in range(2):
        stage.hear(a, digest=same)
        stage.now_ms += 1_000
    assert stage.exchanges() == [(a.name, "digest")]


def test_two_are_in_flight_one_per_peer_and_the_rest_waits() -> None:
    stage = Stage()
    actors = met(stage, 5)
    differ(stage, actors)
    differ(stage, actors)
    assert [name for name, _ in stage.exchanges()] == ["n00", "n01"]
    stage.converse("n01", ok=False)
    assert [name for name, _ in stage.exchanges()] == ["n00", "n01", "n02"]
    assert stage.notes("exchange_failed") == 1
    stage.converse("n00")
    stage.converse("n02")
    assert [name for name, _ in stage.exchanges()] == ["n00", "n01", "n02", "n03", "n04"]
    stage.converse("nobody")
    assert len(stage.exchanges()) == 5


def test_no_more_wait_than_a_few() -> None:
    stage = Stage()
    actors = met(stage, WAITING_MAX + 4)
    differ(stage, actors)
    assert stage.notes("exchange_dropped") == 2


def test_a_peer_that_went_does_not_have_to_be_waited_for() -> None:
    stage = Stage()
    actors = met(stage, 4)
    differ(stage, actors)
    stage.hear(actors[3], rumors=[actors[2].claim(Rank.DEAD, accuser="n03")])
    stage.converse("n00")
    assert [name for name, _ in stage.exchanges()] == ["n00", "n01", "n03"]


def test_an_end_that_never_comes_does_not_block_for_ever() -> None:
    stage = Stage()
    actors = met(stage, 3)
    differ(stage, actors)
    assert [name for name, _ in stage.exchanges()] == ["n00", "n01"]
    stage.now_ms += 151_000
    differ(stage, actors)
    assert [name for name, _ in stage.exchanges()] == ["n00", "n01", "n02", "n00"]
    assert stage.notes("exchange_failed") == 2


def test_now_and_then_a_random_member_is_talked_to_seldom_if_it_agrees() -> None:
    stage = Stage()
    met(stage, 4)
    for _ in range(4):
        stage.run(36_000 * AGREED_EVERY)
        for name, why in stage.exchanges():
            assert why == "periodic"
            stage.converse(name)
    assert 4 <= len(stage.exchanges()) <= 6


# ── Rows ─────────────────────────────────────────────────────────────────────


def take(stage: Stage, *rows: Claim) -> None:
    stage.converse("n00", rows)


def test_rows_make_members_and_are_passed_on() -> None:
    stage = Stage()
    met(stage, 1)
    b = Actor("b", stage.swim.address._replace(port=1))
    take(stage, b.row(Rank.ALIVE))
    assert [up.member.name for up in stage.of(MemberUp)] == ["b"]
    stage.run(500)
    assert b.claim() in stage.spread()


def test_who_joins_has_no_news_for_the_others() -> None:
    stage = Stage()
    met(stage, 1)
    here = stage.swim.address
    others = [Actor(f"x{number}", here._replace(port=number + 1)) for number in range(9)]
    take(stage, *(other.row(Rank.ALIVE) for other in others))
    assert len(stage.of(MemberUp)) == 9
    stage.run(2_000)
    assert not {other.claim() for other in others} & set(stage.spread())


def test_a_death_in_an_exchange_is_a_doubt_that_the_member_is_told_of() -> None:
    stage = Stage()
    a, b = met(stage, 2)
    take(stage, b.row(Rank.DEAD, accuser="far"))
    assert stage.rank("n01") is Rank.SUSPECT
    assert [told.claim.rank for told in stage.sent(Accusation, b.address)] == [Rank.SUSPECT]
    stage.run(500)
    assert b.name not in [claim.name for claim in stage.spread()]
    b.incarnation = 1
    stage.hear(b)
    assert stage.rank("n01") is Rank.ALIVE
    assert stage.of(MemberDown) == []
    assert a.well


def test_a_death_in_an_exchange_is_believed_of_those_who_are_gone_or_unknown() -> None:
    stage = Stage()
    a, b = met(stage, 2)
    stage.hear(a, rumors=[b.claim(Rank.DEAD, accuser="n00")])
    unknown = Actor("u", b.address._replace(port=9))
    take(stage, unknown.row(Rank.DEAD))
    assert stage.rank("u") is Rank.DEAD
    b.incarnation = 2
    take(stage, b.row(Rank.DEAD))
    assert stage.rank("n01") is Rank.DEAD


def test_a_goodbye_in_an_exchange_is_a_goodbye() -> None:
    stage = Stage()
    _, b = met(stage, 2)
    take(stage, b.row(Rank.LEFT))
    assert stage.rank("n01") is Rank.LEFT


@pytest.mark.parametrize("rank", [Rank.ALIVE, Rank.SUSPECT])
def test_a_member_held_dead_here_and_alive_there_is_told(rank: Rank) -> None:
    stage = Stage()
    a, b = met(stage, 2)
    stage.hear(a, rumors=[b.claim(Rank.DEAD, accuser="n00")])
    stage.clear()
    take(stage, b.row(rank))
    assert stage.rank("n01") is Rank.DEAD
    assert [told.claim.rank for told in stage.sent(Accusation, b.address)] == [Rank.DEAD]


def test_the_table_is_sent_whole_and_in_order() -> None:
    stage = Stage()
    a, b = met(stage, 2)
    stage.hear(a, rumors=[b.claim(Rank.DEAD, accuser="n00")])
    rows = stage.swim.rows()
    assert [row.name for row in rows] == ["me", "n00", "n01"]
    assert all(row.address is not None and row.meta is not None for row in rows)
    assert [row.name for row in stage.swim.members()] == ["me", "n00", "n01"]
