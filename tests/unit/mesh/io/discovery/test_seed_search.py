import asyncio

import pytest

from smg_mesh.io.discovery import seed_search as module
from smg_mesh.io.discovery.seed_search import (
    AT_A_TIME,
    SEEDS_MAX,
    parse_seeds,
)
from smg_mesh.swim.messages import Address
from support.mesh.seed_network import ME, A, B, C, Network, running, until


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second takes two milliseconds; nothing else is different."""
    for name in ("GREET_S", "BACKOFF_MIN_S", "BACKOFF_MAX_S", "AGAIN_S"):
        monkeypatch.setattr(module, name, getattr(module, name) / 500)


async def test_one_seed_that_answers_is_enough() -> None:
    network = Network([A])
    seeds = network.seeds("10.0.0.1")
    async with running(seeds):
        await until(lambda: seeds.joined)
    assert network.greeted[0] == A
    assert seeds.seeds[0].error == ""


async def test_the_second_seed_is_tried_although_the_first_is_dead() -> None:
    network = Network([B])
    network.hang[A] = asyncio.Event()
    seeds = network.seeds("10.0.0.1", "10.0.0.2")
    async with running(seeds):
        await until(lambda: seeds.joined)
        network.hang[A].set()


async def test_a_seed_that_comes_late_is_found_however_late() -> None:
    network = Network()
    seeds = network.seeds("10.0.0.1")
    async with running(seeds):
        await until(lambda: len(network.asked) > 6)
        assert not seeds.joined
        network.there.append(A)
        await until(lambda: seeds.joined)


async def test_while_alone_every_seed_is_greeted_again_and_again() -> None:
    network = Network()
    seeds = network.seeds("10.0.0.1", "10.0.0.2")
    async with running(seeds):
        await until(lambda: network.greeted.count(A) > 20)
        assert len(network.asked) < len(network.greeted)
    assert abs(network.greeted.count(A) - network.greeted.count(B)) <= 2


async def test_a_name_that_appears_late_is_greeted_as_soon_as_it_resolves() -> None:
    network = Network([A])
    seeds = network.seeds("seed")
    async with running(seeds):
        await until(lambda: network.failures)
        assert "Name or service not known" in seeds.seeds[0].error
        network.names["seed"] = ["10.0.0.1"]
        await until(lambda: A in network.greeted)
        await until(lambda: seeds.joined)


async def test_a_name_is_resolved_anew_in_every_round() -> None:
    network = Network([B], {"seed": ["10.0.0.1"]})
    seeds = network.seeds("seed")
    async with running(seeds):
        await until(lambda: A in network.asked)
        network.names["seed"] = ["10.0.0.2"]
        await until(lambda: seeds.joined)


async def test_the_last_good_address_serves_when_names_break() -> None:
    network = Network([], {"seed": ["10.0.0.1"]})
    seeds = network.seeds("seed")
    async with running(seeds):
        await until(lambda: network.asked)
        network.names.clear()
        network.there.append(A)
        await until(lambda: seeds.joined)


async def test_no_more_than_four_are_asked_at_a_time_and_each_once_a_round() -> None:
    network = Network()
    texts = [f"10.0.1.{number}" for number in range(20)]
    network.names["seed"] = [*texts, "10.0.0.1"]
    gate = asyncio.Event()
    network.hang = {Address(host, 7946): gate for host in network.names["seed"]}
    seeds = network.seeds(*texts, "seed")
    async with running(seeds):
        await until(lambda: network.at_once == AT_A_TIME)
        gate.set()
        await until(lambda: len(network.asked) >= 21)
        assert sorted(network.asked[:21]) == sorted(network.hang)
    assert network.most_at_once == AT_A_TIME


async def test_a_name_server_that_hangs_holds_up_no_other_seed() -> None:
    network = Network([B])
    release = asyncio.Event()
    seeds = network.seeds("seed", "10.0.0.2")
    real = seeds._resolver.resolve

    async def slow(place, **more):  # type: ignore[no-untyped-def]  # as the resolver is called
        if place.host == "seed":
            await release.wait()
        return await real(place, **more)

    seeds._resolver.resolve = slow  # type: ignore[method-assign]  # the name server that hangs
    async with running(seeds):
        await until(lambda: seeds.joined)
        release.set()


async def test_a_seed_that_is_this_node_is_left_alone() -> None:
    network = Network()
    network.selves.append(A)
    network.names["seed"] = [ME.host]
    seeds = network.seeds("10.0.0.1", "seed")
    async with running(seeds):
        await until(lambda: all(seed.ourselves for seed in seeds.seeds))
        before = len(network.asked), len(network.greeted)
        await asyncio.sleep(0.05)
        assert (len(network.asked), len(network.greeted)) == before
    assert network.asked == [A]
    assert not seeds.expected
    assert not seeds.joined


async def test_nobody_is_expected_without_seeds_and_old_peers() -> None:
    network = Network()
    assert not network.seeds().expected
    assert network.seeds("10.0.0.1").expected
    assert network.seeds(old_peers=[A]).expected


async def test_peers_of_an_earlier_life_are_seeds_too() -> None:
    network = Network([B])
    seeds = network.seeds("10.0.0.1", old_peers=[B, C])
    async with running(seeds):
        await until(lambda: seeds.joined)
    assert B in network.members


async def test_old_peers_are_greeted_less_and_less() -> None:
    network = Network()
    seeds = network.seeds("10.0.0.1", old_peers=[B])
    async with running(seeds):
        await until(lambda: network.greeted.count(A) > 60)
    assert 10 < network.greeted.count(B) < network.greeted.count(A) - 20


async def test_afterwards_absent_seeds_are_greeted_now_and_then() -> None:
    network = Network([A])
    seeds = network.seeds("10.0.0.1", "10.0.0.2", old_peers=[C])
    async with running(seeds):
        await until(lambda: seeds.joined)
        await until(lambda: network.greeted.count(C) > 15)
        before = network.greeted.copy()
        await until(lambda: network.greeted.count(B) > before.count(B) + 2)
        assert network.greeted.count(A) == before.count(A)


async def test_who_loses_everybody_searches_as_at_the_start() -> None:
    network = Network([A])
    seeds = network.seeds("10.0.0.1")
    async with running(seeds):
        await until(lambda: seeds.joined)
        network.there.clear()
        network.members.clear()
        seeds.lost_one()
        before = len(network.greeted)
        await until(lambda: len(network.greeted) > before + 20)
        network.there.append(A)
        await until(lambda: network.members == [A])


async def test_a_seed_added_later_is_asked_at_once() -> None:
    network = Network([A, B])
    seeds = network.seeds("10.0.0.1")
    async with running(seeds):
        await until(lambda: seeds.joined)
        await asyncio.sleep(0.01)
        seeds.add(parse_seeds(["10.0.0.2"]))
        seeds.add(parse_seeds(["10.0.0.2"]))
        await until(lambda: B in network.members)
    assert [seed.text for seed in seeds.seeds] == ["10.0.0.1", "10.0.0.2"]


async def test_an_exchange_that_somebody_else_began_counts() -> None:
    network = Network()
    seeds = network.seeds("10.0.0.1")
    async with running(seeds):
        await until(lambda: network.asked)
        network.members.append(B)
        seeds.exchanged()
        await until(lambda: seeds._wake.is_set() is False)
    assert seeds.joined


async def test_trouble_is_told_once_and_again_after_an_answer() -> None:
    network = Network()
    seeds = network.seeds("10.0.0.1")
    async with running(seeds):
        await until(lambda: len(network.asked) > 4)
        assert network.failures == [("10.0.0.1", "10.0.0.1:7946: nobody there")]
        network.there.append(A)
        await until(lambda: seeds.joined)
        assert seeds.seeds[0].error == ""
        network.there.clear()
        network.members.clear()
        seeds.lost_one()
        await until(lambda: len(network.failures) == 2)


def test_seeds_have_a_limit() -> None:
    many = [f"10.0.2.{number}" for number in range(SEEDS_MAX + 1)]
    with pytest.raises(ValueError, match="more than 64"):
        parse_seeds(many)
    network = Network()
    seeds = network.seeds(*many[:-1])
    with pytest.raises(ValueError, match="more than 64"):
        seeds.add(parse_seeds(many[-1:]))
    seeds.add(parse_seeds(many[:3]))


def test_the_same_seed_named_twice_is_one() -> None:
    assert len(Network().seeds("a", "a", " a").seeds) == 1
