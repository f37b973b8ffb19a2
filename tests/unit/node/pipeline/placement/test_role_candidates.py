"""Who can be put together with whom, and what follows where somebody is missing, full or overloaded."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import token_ids
from smg_node.core.journey import Chosen, Journey
from smg_node.engines.load import Load
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.health.circuit_breaker import BreakerOptions
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.pairs.pair_reservation import PairReservation
from smg_node.pipeline.placement.placement_request import PlacementRequest
from smg_node.pipeline.placement.placer import PlacerOptions
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Avoid
from support.engines.fake_engine import FakeEngine
from support.engines.generation_bench import Bench, bench_of
from support.engines.paired_engines import Network
from support.fleet.fleet_builder import FAST, declare, set_aside

CALM = replace(FAST, probe_interval_s=60.0, breaker=BreakerOptions(open_s=60, connect_failures=1))
QUICK = PlacerOptions("round_robin", wait_for_worker_s=0.05)


@dataclass
class Scene:
    """First halves p q r, second ones d e f, and a that answers alone."""

    bench: Bench
    journey: Journey

    def worker(self, host: str) -> Worker:
        return self.bench.fleet.get(f"grpc://{host}:1")

    async def place(self, *, pair: bool = True, key: str = "", avoid: str = "") -> Reservation:
        model = self.bench.fleet.served("tiny")
        assert model is not None
        out = frozenset(str(self.worker(host).id) for host in avoid)
        deadline_s = asyncio.get_running_loop().time() + 0.3
        ids = token_ids(list(range(100)))
        wish = PlacementRequest(
            deadline_s, ids, key=key, pair=pair, avoid=Avoid(failed=out), journey=self.journey
        )
        return await self.bench.placer.hold(model, wish)

    async def hosts(self, **how: object) -> str:
        """Return who takes a call; it is over at once."""
        hold = await self.place(**how)  # type: ignore[arg-type]  # handed through
        hold.release(0)
        second = hold.worker.url.host
        return (
            f"{hold.prefill.worker.url.host}{second}"
            if isinstance(hold, PairReservation)
            else second
        )

    async def many(self, count: int = 12, **how: object) -> Counter[str]:
        return Counter([await self.hosts(**how) for _ in range(count)])

    def turn(self, hosts: str, **state: bool) -> None:
        for host in hosts:
            for name, on in state.items():
                setattr(self.worker(host).load, name, on)
        self.bench.fleet._note_turn()

    def idle(self) -> bool:
        return all(worker.load.inflight == 0 for worker in self.bench.fleet.workers())


@asynccontextmanager
async def scene(
    folder: Path,
    hosts: str,
    *,
    groups: dict[str, str] | None = None,
    labels: Sequence[str] = (),
    placing: PlacerOptions = QUICK,
) -> AsyncIterator[Scene]:
    network = Network("nixl")
    groups = groups or {}
    engines: dict[str, FakeEngine] = {}
    for host in hosts:
        group = groups.get(host, "")
        if host in "pqr":
            engines[host] = network.prefill(group)
        else:
            engines[host] = network.decode(None, group) if host in "def" else FakeEngine()
    async with bench_of(folder, engines, options=CALM, placing=placing) as it:
        declare(it.fleet, *labels)
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in it.fleet.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        yield Scene(it, Journey("r", "n", "chat", "tiny", 0))


async def test_every_first_half_works_with_every_second_one(tmp_path: Path) -> None:
    spread = replace(QUICK, prefill_policy="random", decode_policy="random")
    async with scene(tmp_path, "pqde", placing=spread) as it:
        assert set(await it.many(60)) == {"pd", "pe", "qd", "qe"}
        assert it.idle()


async def test_each_half_has_its_policy_and_its_counters(tmp_path: Path) -> None:
    turns = replace(QUICK, prefill_policy="round_robin", decode_policy="round_robin")
    async with scene(tmp_path, "pqde", placing=turns) as it:
        first = [await it.hosts() for _ in range(4)]
        assert Counter(pair[0] for pair in first) == Counter("ppqq")
        assert Counter(pair[1] for pair in first) == Counter("ddee")
        assert {step.policy for step in it.journey.steps if isinstance(step, Chosen)} == {
            "round_robin"
        }


async def test_policies_of_a_model_go_before_those_of_all(tmp_path: Path) -> None:
    rules = replace(
        QUICK, prefill_policies={"tiny": "random"}, decode_policies={"tiny": "power_of_two"}
    )
    async with scene(tmp_path, "pqde", placing=rules) as it:
        await it.hosts()
        steps = [step for step in it.journey.steps if isinstance(step, Chosen)]
        assert [(step.role, step.policy) for step in steps] == [
            ("prefill", "random"),
            ("decode", "power_of_two"),
        ]


async def test_only_those_of_one_group_are_put_together(tmp_path: Path) -> None:
    groups = {"p": "x", "d": "x", "q": "y", "e": "y", "r": "z"}
    spread = replace(QUICK, prefill_policy="random", decode_policy="random")
    async with scene(tmp_path, "pqrde", groups=groups, placing=spread) as it:
        assert set(await it.many(40)) == {"pd", "qe"}
        # A first half whose partners are all gone is none.
        set_aside(it.bench.fleet, "grpc://d:1", on=True)
        assert set(await it.many(20)) == {"qe"}


async def test_an_operators_word_goes_before_what_engines_say_of_their_network(
    tmp_path: Path,
) -> None:
    groups = {"p": "x", "d": "y"}
    async with scene(tmp_path, "pd", groups=groups) as it:
        with pytest.raises(SmgError, match=r"no pair of workers .*: 1 for prompts, 1 for answers"):
            await it.place()
    labels = ("p?label.kv_connector=rack", "d?label.kv_connector=rack")
    async with scene(tmp_path, "pd", groups=groups, labels=labels) as it:
        assert await it.hosts() == "pd"


async def test_the_second_half_is_near_the_first_one_while_it_has_room(tmp_path: Path) -> None:
    labels = tuple(f"{host}?label.zone={zone}" for host, zone in zip("pqde", "1212", strict=True))
    spread = replace(QUICK, prefill_policy="random", decode_policy="random")
    async with scene(tmp_path, "pqde", labels=labels, placing=spread) as it:
        assert set(await it.many(30)) == {"pd", "qe"}
        it.worker("d").load.capacity = 1
        held = [await it.place() for _ in range(6)]
        assert {hold.worker.url.host for hold in held} == {"d", "e"}
        for hold in held:
            hold.release(0)
        assert it.idle()


async def test_a_nodes_own_zone_begins(tmp_path: Path) -> None:
    labels = tuple(f"{host}?label.zone={zone}" for host, zone in zip("pqde", "1212", strict=True))
    mine = replace(QUICK, zone="2", prefill_policy="random", decode_policy="random")
    async with scene(tmp_path, "pqde", labels=labels, placing=mine) as it:
        assert set(await it.many(20)) == {"qe"}


async def test_a_call_waits_for_a_half_that_is_full(tmp_path: Path) -> None:
    async with scene(tmp_path, "pd") as it:
        it.turn("d", full=True)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(it.place())
            await asyncio.sleep(0.1)
            assert not waiting.done()
            it.turn("d", full=False)
        hold = waiting.result()
        assert isinstance(hold, PairReservation)
        hold.release(0)
        assert it.idle()


async def test_where_pairs_are_full_one_that_answers_alone_takes_the_call(tmp_path: Path) -> None:
    async with scene(tmp_path, "pda") as it:
        assert await it.hosts() == "pd"
        it.turn("d", full=True)
        assert await it.hosts() == "a"


async def test_overloaded_halves_are_passed_over_while_there_are_others(tmp_path: Path) -> None:
    spread = replace(QUICK, prefill_policy="random", decode_policy="random")
    async with scene(tmp_path, "pqde", placing=spread) as it:
        load = Load(0, 1, 20, None, None, None, None, None)
        now_s = asyncio.get_running_loop().time()
        it.worker("p").load.sample(load, now_s)
        it.worker("d").load.sample(load, now_s)
        assert set(await it.many(20)) == {"qe"}


async def test_a_node_that_sheds_refuses_where_one_half_is_overloaded(tmp_path: Path) -> None:
    async with scene(tmp_path, "pd", placing=replace(QUICK, shed=True)) as it:
        load = Load(0, 1, 20, None, None, None, None, None)
        it.worker("d").load.sample(load, asyncio.get_running_loop().time())
        with pytest.raises(SmgError, match="overloaded"):
            await it.place()


async def test_a_half_that_failed_the_call_is_passed_over(tmp_path: Path) -> None:
    async with scene(tmp_path, "pqde") as it:
        assert await it.many(10, avoid="qd") == {"pe": 10}
        # Nobody else can be had: it is tried again rather than refused.
        assert set(await it.many(10, avoid="pqe")) <= {"pd", "qd", "pe", "qe"}


async def test_a_broken_half_is_tried_by_a_request_for_which_there_is_no_other(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, "pd") as it:
        breaker = it.worker("d").breaker
        breaker.failure(asyncio.get_running_loop().time() - 10, connect=True)
        it.bench.fleet._note_turn()
        hold = await it.place()
        assert isinstance(hold, PairReservation)
        assert (hold.probe > 0, hold.prefill.probe) == (True, 0)
        steps = [step for step in it.journey.steps if isinstance(step, Chosen)]
        assert [step.policy for step in steps] == ["probe", "probe"]
        hold.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "nobody", code=UNREACHABLE_CODE), 0.0)
        hold.release(0)
        assert it.idle()


async def test_what_is_not_drawn_is_not_shared(tmp_path: Path) -> None:
    async with scene(tmp_path, "pda") as it:
        assert await it.many(8, pair=False) == {"a": 8}
    async with scene(tmp_path, "pd") as it:
        with pytest.raises(SmgError, match="no worker"):
            await it.place(pair=False)


async def test_keys_stay_with_their_halves(tmp_path: Path) -> None:
    by_key = replace(QUICK, prefill_policy="consistent_hashing", decode_policy="consistent_hashing")
    async with scene(tmp_path, "pqrdef", placing=by_key) as it:
        for key in ("one", "two", "three", "four"):
            assert len(await it.many(6, key=key)) == 1
        assert len({await it.hosts(key=f"key {at}") for at in range(60)}) >= 6
        assert it.journey.steps[-1].key  # type: ignore[union-attr]  # a choice
