import dataclasses
import random

import msgspec
import pytest

from smg_mesh.config import PROFILES
from smg_mesh.swim.dissemination.rumors import Rumors
from smg_mesh.swim.messages import Address, Claim, News, Rank
from smg_mesh.swim.wire import RUMORS_MAX, claim_bytes, news_bytes

OPTIONS = PROFILES["lan"]
ROOM = 1300


def claim_of(name: str, incarnation: int = 0, rank: Rank = Rank.SUSPECT) -> Claim:
    return Claim(name, 1 << 50, incarnation, rank, accuser="x")


def news_of(key: str, seq: int = 1, content: bytes = b"") -> News:
    return News("a", "load", key, seq, content)


def names(rumors: Rumors, bytes_left: int = ROOM, *, members: int = 3) -> list[str]:
    return [claim.name for claim in rumors.take(bytes_left, members=members)[0]]


def keys(rumors: Rumors, bytes_left: int = ROOM, *, members: int = 3) -> list[str]:
    return [news.key for news in rumors.take(bytes_left, members=members)[1]]


def test_nothing_waits_at_first() -> None:
    rumors = Rumors(OPTIONS)
    assert rumors.take(ROOM, members=3) == ((), ())
    assert rumors.waiting() == 0
    assert rumors.counts() == (0, 0)


@pytest.mark.parametrize(
    ("members", "transmissions"),
    [(0, 4), (1, 4), (9, 4), (10, 8), (99, 8), (100, 12), (999, 12), (1000, 16), (10_000, 20)],
)
def test_a_rumor_is_sent_as_often_as_the_cluster_is_large(members: int, transmissions: int) -> None:
    rumors = Rumors(OPTIONS)
    rumors.add(claim_of("b"), members=members)
    rumors.add_news(news_of("k"))
    for left in range(transmissions, 0, -1):
        assert rumors.waiting() == 2, left
        assert rumors.take(ROOM, members=members) == ((claim_of("b"),), (news_of("k"),))
    assert rumors.take(ROOM, members=members) == ((), ())
    assert rumors.waiting() == 0


def test_the_least_sent_go_first_and_then_the_newest() -> None:
    rumors = Rumors(OPTIONS)
    for name in ("b", "c", "d"):
        rumors.add(claim_of(name), members=3)
    two = 2 * claim_bytes(claim_of("b"))
    assert names(rumors, two) == ["d", "c"]
    assert names(rumors, two) == ["b", "d"]
    assert names(rumors, two) == ["c", "b"]
    rumors.add(claim_of("e"), members=3)
    assert names(rumors) == ["e", "d", "c", "b"]


def test_a_newer_claim_replaces_an_older_one_and_starts_afresh() -> None:
    rumors = Rumors(OPTIONS)
    rumors.add(claim_of("b"), members=3)
    for _ in range(3):
        names(rumors)
    rumors.add(claim_of("b", incarnation=1), members=3)
    assert rumors.counts() == (1, 0)
    for _ in range(4):
        assert rumors.take(ROOM, members=3)[0] == (claim_of("b", incarnation=1),)
    assert names(rumors) == []


def test_an_older_claim_never_replaces_a_newer_one() -> None:
    rumors = Rumors(OPTIONS)
    rumors.add(claim_of("b", incarnation=2), members=3)
    rumors.add(claim_of("b", incarnation=1, rank=Rank.LEFT), members=3)
    assert rumors.take(ROOM, members=3)[0] == (claim_of("b", incarnation=2),)


def test_another_accuser_of_the_same_doubt_is_passed_on() -> None:
    rumors = Rumors(OPTIONS)
    rumors.add(claim_of("b"), members=3)
    other = msgspec.structs.replace(claim_of("b"), accuser="y")
    rumors.add(other, members=3)
    assert rumors.take(ROOM, members=3)[0] == (other,)


def test_address_and_meta_travel_with_the_living_only() -> None:
    rumors = Rumors(OPTIONS)
    here = Address("10.0.0.1", 7946)
    for name, rank in (("b", Rank.ALIVE), ("c", Rank.SUSPECT), ("d", Rank.LEFT)):
        rumors.add(Claim(name, 1, 1, rank, here, b"meta"), members=3)
    said = {claim.name: (claim.address, claim.meta) for claim in rumors.take(ROOM, members=3)[0]}
    assert said == {"b": (here, b"meta"), "c": (None, None), "d": (None, None)}


def test_what_is_forgotten_is_not_sent_again() -> None:
    rumors = Rumors(OPTIONS)
    for name in ("b", "c"):
        rumors.add(claim_of(name), members=3)
    rumors.forget("b")
    rumors.forget("nobody")
    assert names(rumors) == ["c"]
    assert rumors.counts() == (1, 0)


@pytest.mark.parametrize(("members", "cap"), [(0, 64), (3, 64), (32, 64), (100, 200)])
def test_claims_have_a_cap_and_the_most_sent_make_room(members: int, cap: int) -> None:
    rumors = Rumors(OPTIONS)
    for i in range(cap):
        rumors.add(claim_of(f"old{i}"), members=members)
    sent = names(rumors, members=members)
    for i in range(len(sent)):
        rumors.add(claim_of(f"new{i}"), members=members)
    assert rumors.counts() == (cap, 0)
    waiting = {name for _ in range(2 * cap) for name in names(rumors, members=members)}
    assert waiting.isdisjoint(sent)
    assert len(waiting) == cap


def test_a_cluster_that_shrank_lowers_the_cap() -> None:
    rumors = Rumors(OPTIONS)
    for i in range(400):
        rumors.add(claim_of(f"n{i}"), members=200)
    rumors.add(claim_of("b"), members=5)
    assert rumors.counts() == (64, 0)
    assert names(rumors)[0] == "b"


def test_news_are_new_once() -> None:
    rumors = Rumors(OPTIONS)
    assert rumors.add_news(news_of("k", 5))
    assert not rumors.add_news(news_of("k", 5))
    assert not rumors.add_news(news_of("k", 4))
    assert rumors.add_news(news_of("k", 6))
    assert rumors.add_news(news_of("other", 1))
    assert rumors.add_news(News("b", "load", "k", 1, b""))
    assert rumors.add_news(News("a", "sticky", "k", 1, b""))
    assert rumors.counts() == (0, 4)


def test_news_that_were_sent_often_enough_do_not_start_again() -> None:
    rumors = Rumors(OPTIONS)
    rumors.add_news(news_of("k", 5))
    for _ in range(4):
        assert keys(rumors) == ["k"]
    assert keys(rumors) == []
    assert not rumors.add_news(news_of("k", 5))
    assert keys(rumors) == []
    assert rumors.add_news(news_of("k", 6))


def test_news_have_a_cap_of_entries_and_of_bytes() -> None:
    few = Rumors(dataclasses.replace(OPTIONS, news_entries_max=10))
    for i in range(100):
        assert few.add_news(news_of(f"k{i}"))
    assert few.counts() == (0, 10)
    one = news_bytes(news_of("k10", 1, bytes(500)))
    small = Rumors(dataclasses.replace(OPTIONS, news_bytes_max=10 * one))
    for i in range(100):
        assert small.add_news(news_of(f"k{i:02}", 1, bytes(500)))
    assert small.counts() == (0, 10)
    assert keys(small)[0] == "k99"


def test_what_was_heard_is_remembered_within_bounds() -> None:
    rumors = Rumors(dataclasses.replace(OPTIONS, news_entries_max=8))
    for i in range(1000):
        rumors.add_news(news_of(f"k{i}"))
    assert not rumors.add_news(news_of("k999"))
    assert not rumors.add_news(news_of("k984"))
    assert rumors.add_news(news_of("k0"))  # forgotten long ago


def test_claims_have_three_fifths_of_a_packet_and_news_the_rest() -> None:
    rumors = Rumors(OPTIONS)
    for i in range(60):
        rumors.add(claim_of(f"b{i:02}"), members=50)
        rumors.add_news(news_of(f"k{i:02}", 1, bytes(20)))
    claims, news = rumors.take(ROOM, members=50)
    claims_size = sum(map(claim_bytes, claims))
    news_size = sum(map(news_bytes, news))
    assert 0.55 * ROOM <= claims_size <= 0.6 * ROOM + 30
    assert ROOM - 40 <= claims_size + news_size <= ROOM


def test_what_one_class_leaves_the_other_may_use() -> None:
    rumors = Rumors(OPTIONS)
    for i in range(100):
        rumors.add(claim_of(f"b{i:02}"), members=50)
    rumors.add_news(news_of("k"))
    claims, news = rumors.take(ROOM, members=50)
    assert news == (news_of("k"),)
    assert sum(map(claim_bytes, claims)) > ROOM - 2 * claim_bytes(claims[0]) - news_bytes(news[0])
    assert len(set(claims)) == len(claims)

    rumors = Rumors(OPTIONS)
    rumors.add(claim_of("b"), members=50)
    for i in range(100):
        rumors.add_news(news_of(f"k{i:02}", 1, bytes(20)))
    claims, news = rumors.take(ROOM, members=50)
    assert claims == (claim_of("b"),)
    assert sum(map(news_bytes, news)) > ROOM - 2 * news_bytes(news[0]) - claim_bytes(claims[0])


def test_large_news_do_not_starve_behind_a_storm_of_claims() -> None:
    rumors = Rumors(OPTIONS)
    rumors.add_news(news_of("k", 1, bytes(512)))
    heard = 0
    for i in range(20):
        for j in range(60):
            rumors.add(claim_of(f"b{j}", incarnation=i), members=50)
        claims, news = rumors.take(ROOM, members=50)
        assert claims
        heard += len(news)
    assert heard >= 8


def test_a_large_claim_waits_for_a_packet_with_room_and_lets_others_pass() -> None:
    rumors = Rumors(OPTIONS)
    large = Claim("large", 1, 1, Rank.ALIVE, Address("10.0.0.1", 1), bytes(500))
    rumors.add(claim_of("b"), members=3)
    rumors.add(large, members=3)
    assert names(rumors, 100) == ["b"]
    assert names(rumors, 600) == ["large", "b"]


def test_a_packet_carries_at_most_so_many_and_never_more_than_fits() -> None:
    rng = random.Random(5)
    rumors = Rumors(OPTIONS)
    tiny = News("a", "k", "", 0, b"")
    for _ in range(300):
        for _ in range(rng.randrange(30)):
            rumors.add(claim_of(f"b{rng.randrange(200)}", rng.randrange(5)), members=200)
            key = str(rng.randrange(1000))
            rumors.add_news(msgspec.structs.replace(tiny, key=key, seq=rng.randrange(9)))
        room = rng.choice([0, 5, 40, 200, ROOM, 100_000])
        claims, news = rumors.take(room, members=200)
        assert len(claims) + len(news) <= RUMORS_MAX
        assert sum(map(claim_bytes, claims)) + sum(map(news_bytes, news)) <= room
        assert len({claim.name for claim in claims}) == len(claims)
        if room == 100_000 and rumors.waiting() >= RUMORS_MAX:
            assert len(claims) + len(news) == RUMORS_MAX


def test_the_queue_behaves_like_a_sorted_list() -> None:
    rng = random.Random(11)
    rumors = Rumors(OPTIONS)
    model: dict[str, list[int]] = {}  # name → transmissions, age
    size = claim_bytes(claim_of("b000"))
    for step in range(3000):
        match rng.randrange(4):
            case 0 | 1:
                name = f"b{rng.randrange(100):03}"
                rumors.add(claim_of(name), members=100)
                model[name] = [0, -step]
            case 2:
                name = f"b{rng.randrange(100):03}"
                rumors.forget(name)
                model.pop(name, None)
            case _:
                count = rng.randrange(12)
                order = sorted(model, key=lambda name: model[name])[:count]
                assert names(rumors, count * size, members=100) == order
                for name in order:
                    model[name][0] += 1
                    if model[name][0] == 12:
                        del model[name]
        assert rumors.counts() == (len(model), 0)


def test_replacing_for_ever_leaves_nothing_behind() -> None:
    rumors = Rumors(OPTIONS)
    for i in range(20_000):
        rumors.add(claim_of(f"b{i % 10}", incarnation=i), members=10)
        rumors.add_news(news_of(f"k{i % 10}", seq=i))
    assert rumors.counts() == (10, 10)
    assert rumors.leftovers() < 300
