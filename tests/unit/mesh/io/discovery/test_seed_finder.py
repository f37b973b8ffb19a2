"""Seeds that are found: asked in rounds, retried, clipped, and closed at the end."""

import asyncio
from collections.abc import Sequence

import pytest

from smg_mesh.io.discovery import seed_search as module
from smg_mesh.io.discovery.resolver import ADDRESSES_MAX
from smg_mesh.io.discovery.seed_finder import FindError
from smg_mesh.swim.messages import Address
from support.mesh.seed_network import ME, A, B, C, Network, running, until


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second takes two milliseconds; nothing else is different."""
    for name in ("GREET_S", "BACKOFF_MIN_S", "BACKOFF_MAX_S", "AGAIN_S"):
        monkeypatch.setattr(module, name, getattr(module, name) / 500)


class Pods:
    """A finder whose answers are set; fulfils `SeedFinder`."""

    text = "pods of app=node"

    def __init__(self, *shown: Address) -> None:
        self.shown: Sequence[Address] = shown
        self.asked = 0
        self.at_once = 0
        self.closed = 0

    async def find(self) -> Sequence[Address]:
        self.asked += 1
        self.at_once += 1
        try:
            await asyncio.sleep(0)
            assert self.at_once == 1
            if not self.shown:
                raise FindError("the API server is away")
            return self.shown
        finally:
            self.at_once -= 1

    async def close(self) -> None:
        self.closed += 1


async def test_what_a_finder_shows_is_joined_and_this_node_itself_is_left_out() -> None:
    network, pods = Network([A]), Pods(ME, A)
    seeds = network.seeds(finders=[pods])
    assert seeds.expected
    async with running(seeds):
        await until(lambda: seeds.joined)
    assert network.members == [A]
    assert ME not in network.asked
    assert ME not in network.greeted
    assert [(seed.text, seed.error) for seed in seeds.seeds] == [("pods of app=node", "")]
    assert pods.closed == 1


async def test_who_is_all_that_a_finder_shows_waits_for_nobody_and_looks_on() -> None:
    network, pods = Network([A]), Pods(ME)
    seeds = network.seeds(finders=[pods])
    async with running(seeds):
        await until(lambda: not seeds.expected)
        assert not seeds.joined
        pods.shown = [ME, A]
        await until(lambda: seeds.joined)


async def test_a_finder_that_fails_is_asked_again_and_what_it_showed_counts_meanwhile() -> None:
    network, pods = Network(), Pods()
    seeds = network.seeds(finders=[pods])
    async with running(seeds):
        await until(lambda: pods.asked > 3)
        assert network.failures == [("pods of app=node", "the API server is away")]
        assert seeds.expected
        pods.shown = [A]
        await until(lambda: A in network.asked)
        pods.shown = []
        asked = pods.asked
        await until(lambda: pods.asked > asked + 1)
        network.there.append(A)
        await until(lambda: seeds.joined)


async def test_a_finder_is_asked_again_after_joining_so_that_islands_meet() -> None:
    network, pods = Network([A, B]), Pods(A)
    seeds = network.seeds(finders=[pods])
    async with running(seeds):
        await until(lambda: seeds.joined)
        pods.shown = [A, B]
        await until(lambda: B in network.members)
        network.asked.clear()
        asked = pods.asked
        await until(lambda: pods.asked > asked + 2)
    assert network.asked == []


async def test_a_finder_works_beside_names_and_neither_holds_up_the_other() -> None:
    network, pods = Network([B], {"peers": ["10.0.0.2"]}), Pods()
    seeds = network.seeds("peers", finders=[pods])
    async with running(seeds):
        await until(lambda: seeds.joined)
        assert network.members == [B]
        network.there.append(C)
        pods.shown = [C]
        await until(lambda: C in network.members)


async def test_a_finder_that_never_answers_is_given_up_and_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FIND_S", 0.02)

    class Silent(Pods):
        async def find(self) -> Sequence[Address]:
            self.asked += 1
            await asyncio.Event().wait()
            return []

    network, pods = Network([A]), Silent()
    seeds = network.seeds("10.0.0.1", finders=[pods])
    async with running(seeds):
        await until(lambda: seeds.joined)
        await until(lambda: network.failures == [("pods of app=node", "no answer in 0.02 s")])
        await until(lambda: pods.asked > 1)
    assert pods.closed == 1


async def test_of_very_many_addresses_the_first_are_taken() -> None:
    network = Network()
    many = [Address(f"10.1.{number // 200}.{number % 200 + 1}", 7946) for number in range(300)]
    pods = Pods(*many)
    seeds = network.seeds(finders=[pods])
    async with running(seeds):
        await until(lambda: pods.asked > 1)
    assert seeds.seeds[0].addresses == tuple(many[:ADDRESSES_MAX])
