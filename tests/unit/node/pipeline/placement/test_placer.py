"""Placing calls: three real placers agree about keys, waiting, and changes of policy without a restart."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import token_ids
from smg_node.pipeline.generation.generator import checked_key
from smg_node.pipeline.placement.placer import PlacementRequest, Placer, PlacerOptions
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.hash_ring import Ring
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import declare, fleet_of, running, set_aside
from support.fleet.fleet_world import FleetNode, FleetWorld, fleet_world

HOSTS = tuple("abcdefgh")
KEYS = [f"session-{at}" for at in range(30)]


def placer_of(node: FleetNode, policy: str, *, sticky: bool = False) -> Placer:
    return Placer(
        node.fleet,
        Policies(node.shared.sticky, sticky=sticky),
        PlacerOptions(policy, wait_for_worker_s=1),
        clock=SystemClock(),
        rng=random.Random(node.name),
    )


async def place(placer: Placer, key: str, *, model: str = "tiny") -> str:
    """Return where a conversation of that key goes; it is over at once."""
    found = await placer.model(model, deadline_s=float("inf"))
    ids = token_ids([ord(letter) for letter in key * 30])
    hold = await placer.hold(
        found, PlacementRequest(float("inf"), ids=ids, key=key, prompt_tokens=10)
    )
    hold.release(0)
    return hold.worker.id


async def rows(placers: list[Placer]) -> list[list[str]]:
    return [[await place(placer, key) for placer in placers] for key in KEYS]


def agreed(found: list[list[str]]) -> int:
    return sum(len(set(row)) == 1 for row in found)


@pytest.mark.parametrize(
    ("policy", "sticky"),
    [
        ("consistent_hashing", False),
        ("prefix_hash", False),
        ("manual", False),
        ("power_of_two", True),
        ("round_robin", True),
    ],
)
async def test_30_of_30_keys_agree_before_and_after_deaths(
    tmp_path: Path, policy: str, sticky: bool
) -> None:
    async with fleet_world(tmp_path, "n1", "n2", "n3", hosts=HOSTS) as world:
        world["n1"].list_static(*HOSTS)
        await world.until(lambda node: node.ready(*HOSTS))
        uneven(world)
        placers = {node.name: placer_of(node, policy, sticky=sticky) for node in world.all()}
        before = await rows([*placers.values()])
        assert agreed(before) == 30
        assert len({row[0] for row in before}) > 3
        # One worker dies.
        dead = world["n1"].fleet.get(before[0][0])
        for node in world.all():
            node.engines[dead.url.host].up = False
        await world.until(lambda node: not node.fleet.get(dead.id).routable)
        after = await rows([*placers.values()])
        assert agreed(after) == 30
        assert all(was == now for was, now in zip(before, after, strict=True) if was[0] != dead.id)
        # And then one node, and with it what it had open.
        world.kill("n1")
        survivors = await rows([placers["n2"], placers["n3"]])
        assert agreed(survivors) == 30
        assert [row[0] for row in survivors] == [row[0] for row in after]


def uneven(world: FleetWorld) -> None:
    """Let each node have something else open, of which the others do not all know yet."""
    for at, node in enumerate(world.all()):
        for number, worker in enumerate(node.fleet.workers()):
            for _ in range((number + at) % 3):
                worker.hold(10)


async def test_a_drained_worker_hands_its_keys_on_and_does_not_get_them_back(
    tmp_path: Path,
) -> None:
    async with fleet_world(tmp_path, "n1", "n2", hosts=HOSTS[:3]) as world:
        world["n1"].list_static(*HOSTS[:3])
        await world.until(lambda node: node.ready(*HOSTS[:3]))
        placers = [placer_of(node, "random", sticky=True) for node in world.all()]
        home = await place(placers[0], "k")
        world["n2"].desk.drain(home)
        await world.until(lambda node: not node.fleet.get(home).routable)
        moved = {await place(placer, "k") for placer in placers}
        assert len(moved) == 1
        assert home not in moved
        world["n2"].desk.undrain(home)
        await world.until(lambda node: node.fleet.get(home).routable)
        assert {await place(placer, "k") for placer in placers} == moved


async def test_policies_change_per_model_without_a_restart(tmp_path: Path) -> None:
    hosts = ["a", "b", "c?model=other", "d?model=other"]
    engines = {host[0]: FakeEngine() for host in hosts}
    async with running(fleet_of(engines, tmp_path), hosts) as fleet:
        while not all(worker.routable for worker in fleet.workers()):  # noqa: ASYNC110 - from outside
            await asyncio.sleep(0.005)
        placer = Placer(
            fleet,
            Policies(OwnBindings()),
            PlacerOptions("round_robin"),
            clock=SystemClock(),
            rng=random.Random(1),
        )

        async def of(model: str) -> Counter[str]:
            return Counter([await place(placer, "k", model=model) for _ in range(10)])

        assert sorted((await of("tiny")).values()) == [5, 5]
        placer.retune(
            policy="round_robin",
            policies={"tiny": "consistent_hashing"},
            wait_for_worker_s=0,
        )
        assert len(await of("tiny")) == 1
        assert sorted((await of("other")).values()) == [5, 5]
        placer.retune(policy="passthrough", policies={}, wait_for_worker_s=0)
        assert len(await of("other")) == 1
        # And the new patience counts at once: nobody waits.
        set_aside(fleet, "grpc://c:1", on=True)
        set_aside(fleet, "grpc://d:1", on=True)
        with pytest.raises(SmgError) as caught:
            await place(placer, "k", model="other")
        assert caught.value.code == "no_worker_available"


async def test_what_a_decision_stands_on_is_worked_out_once(tmp_path: Path) -> None:
    engines = {host: FakeEngine() for host in "abc"}
    async with running(fleet_of(engines, tmp_path), ["a", "b", "c"]) as fleet:
        while not all(worker.routable for worker in fleet.workers()):  # noqa: ASYNC110 - from outside
            await asyncio.sleep(0.005)
        placer = Placer(
            fleet,
            Policies(OwnBindings()),
            PlacerOptions("consistent_hashing"),
            clock=SystemClock(),
            rng=random.Random(1),
        )

        def ring() -> Ring:
            return placer._decider._stages["tiny"].regular.ring

        first = await place(placer, "k")
        stage = placer._decider._stages["tiny"]
        assert await place(placer, "k") == first
        assert placer._decider._stages["tiny"] is stage
        made = ring()
        set_aside(fleet, first, on=True)
        assert await place(placer, "k") != first
        # A worker that may not be chosen for a while does not change the ring.
        assert ring() is made
        set_aside(fleet, first, on=False)
        assert await place(placer, "k") == first
        declare(fleet, "a?label.weight=2")
        await place(placer, "k")
        assert ring() is not made


async def test_calls_are_counted_with_their_tokens_and_out_once(tmp_path: Path) -> None:
    async with running(fleet_of({"a": FakeEngine()}, tmp_path), ["a"]) as fleet:
        (worker,) = fleet.workers()
        while not worker.routable:  # noqa: ASYNC110 - from outside
            await asyncio.sleep(0.005)
        assert worker.engine is not None
        assert worker.card is not None
        worker.hold(7)
        hold = Reservation(worker, worker.engine, worker.card, 9, 7)
        assert (worker.inflight, worker.load.own_tokens, worker.load.tokens) == (1, 7, 7)
        hold.release(0)
        hold.release(0)
        assert (worker.inflight, worker.load.own_tokens, worker.load.tokens) == (0, 0, 0)


async def test_a_request_that_waits_has_a_worker_tried_that_all_call_down(tmp_path: Path) -> None:
    names = [f"n{at}" for at in range(6)]
    async with fleet_world(tmp_path, *names, hosts=("a",)) as world:
        world["n0"].list_static("a")
        await world.until(lambda node: node.ready("a"))
        worker_id = world["n0"].ids()[0]
        probers = world["n0"].registry.outlook.probers(worker_id)
        bystander = next(node for node in world.all() if node.name not in probers)
        for name in probers:
            world[name].engines["a"].up = False
        others = [node for node in world.all() if node.name not in probers]
        async with asyncio.timeout(5):
            while any(node.ready("a") for node in others):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        # Those in charge cannot reach it; this node can, and somebody needs it.
        assert await place(placer_of(bystander, "random"), "k") == worker_id


@pytest.mark.parametrize(
    ("key", "fits"), [("k" * 256, True), ("k" * 257, False), ("é" * 129, False)]
)
def test_a_routing_key_has_at_most_256_bytes(key: str, fits: bool) -> None:
    assert checked_key(None) == checked_key("") == ""
    if fits:
        assert checked_key(key) == key
        return
    with pytest.raises(SmgError) as caught:
        checked_key(key)
    assert (caught.value.status, caught.value.code) == (400, "routing_key_too_long")
