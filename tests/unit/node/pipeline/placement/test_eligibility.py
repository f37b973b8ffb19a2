"""Who may be chosen, who waits for whom, and what a request's journey says of it."""

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
from smg_node.core.request_context import Priority
from smg_node.engines.load import Load
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.health.circuit_breaker import BreakerOptions, State
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.decider import PlacementRequest
from smg_node.pipeline.placement.placer import Placer, PlacerOptions
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Avoid
from smg_node.routing.wait_queue import DEFAULTS, QueueOptions
from support.engines.fake_engine import FakeEngine
from support.engines.generation_bench import Bench, bench_of
from support.fleet.fleet_builder import FAST, declare, set_aside

CALM = replace(FAST, probe_interval_s=60.0, breaker=BreakerOptions(open_s=0.05, connect_failures=1))
DEAD = SmgError(ErrorKind.UPSTREAM_FAILED, "nobody", code=UNREACHABLE_CODE)


@dataclass
class Scene:
    """Some workers, by the letter of their host, and calls that are placed among them."""

    bench: Bench
    journey: Journey

    @property
    def placer(self) -> Placer:
        return self.bench.placer

    def worker(self, host: str) -> Worker:
        return self.bench.fleet.get(f"grpc://{host}:1")

    def ids(self, *hosts: str) -> frozenset[str]:
        return frozenset(str(self.worker(host).id) for host in hosts)

    def mark(self, *hosts: str, on: bool = True) -> None:
        """Let workers be full, as their loads would say."""
        for host in hosts:
            self.worker(host).load.full = on
        self.bench.fleet._note_turn()

    def strain(self, *hosts: str) -> None:
        """Let workers be overloaded, as their engines would say."""
        for host in hosts:
            load = Load(0, 1, 20, None, None, None, None, None)
            self.worker(host).load.sample(load, asyncio.get_running_loop().time())

    async def place(
        self,
        *,
        avoid: Avoid | None = None,
        deadline_s: float = float("inf"),
        target: str | None = None,
        priority: Priority = "default",
        key: str = "",
        choice: int = 0,
    ) -> Reservation:
        model = self.bench.fleet.served("tiny")
        assert model is not None
        wish = PlacementRequest(
            deadline_s,
            ids=token_ids([1, 2, 3]),
            avoid=avoid or Avoid(),
            target=target,
            priority=priority,
            key=key,
            choice=choice,
            journey=self.journey,
        )
        return await self.placer.hold(model, wish)

    async def host(self, **how: object) -> str:
        """Return where a call goes; it is over at once."""
        hold = await self.place(**how)  # type: ignore[arg-type]  # handed through
        hold.release(0)
        return hold.worker.url.host

    async def hosts(self, count: int = 12, **how: object) -> Counter[str]:
        return Counter([await self.host(**how) for _ in range(count)])

    def chosen(self) -> Chosen:
        step = self.journey.steps[-1]
        assert isinstance(step, Chosen)
        return step


@asynccontextmanager
async def scene(
    folder: Path, hosts: str = "abc", *, labels: Sequence[str] = (), **placing: object
) -> AsyncIterator[Scene]:
    options = PlacerOptions("round_robin", wait_for_worker_s=0.2)
    options = replace(options, **placing)  # type: ignore[arg-type]  # its own fields
    engines = {host: FakeEngine() for host in hosts}
    async with bench_of(folder, engines, options=CALM, placing=options) as it:
        declare(it.fleet, *labels)
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in it.fleet.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        yield Scene(it, Journey("r", "n", "chat", "tiny", 0))


async def test_nobody_is_chosen_who_drains_is_stuck_is_full_or_broken(tmp_path: Path) -> None:
    async with scene(tmp_path, "abcde") as it:
        now_s = asyncio.get_running_loop().time()
        set_aside(it.bench.fleet, "grpc://a:1", on=True)
        it.worker("b").load.stuck = True
        it.mark("c")
        it.worker("d").breaker.failure(now_s, connect=True)
        assert it.worker("d").breaker.state(now_s) is State.OPEN
        assert set(await it.hosts()) == {"e"}
        assert dict(it.chosen().dropped) == {
            **dict.fromkeys(it.ids("a"), "draining"),
            **dict.fromkeys(it.ids("b"), "stuck"),
            **dict.fromkeys(it.ids("c"), "full"),
            **dict.fromkeys(it.ids("d"), "breaker open"),
        }
        assert it.chosen().of == 1


async def test_the_overloaded_are_chosen_only_where_all_are(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        it.strain("a", "b")
        assert set(await it.hosts()) == {"c"}
        assert {why for _, why in it.chosen().dropped} == {"overloaded"}
        it.strain("c")
        assert set(await it.hosts()) == {"a", "b", "c"}


async def test_a_call_goes_to_others_than_those_it_failed_at(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        assert set(await it.hosts(avoid=Avoid(it.ids("a"), it.ids("b")))) == {"c"}
        it.strain("c")
        # One that is overloaded is better than one that has failed already.
        assert set(await it.hosts(avoid=Avoid(it.ids("a", "b")))) == {"c"}


async def test_one_that_failed_may_be_chosen_again_only_where_it_is_alone(tmp_path: Path) -> None:
    async with scene(tmp_path, "ab") as it:
        assert set(await it.hosts(avoid=Avoid(it.ids("a", "b")))) == {"a", "b"}
        assert set(await it.hosts(avoid=Avoid(it.ids("a"), it.ids("b")))) == {"a"}


async def test_one_that_is_gone_is_waited_for_and_called_again_at_the_end(tmp_path: Path) -> None:
    async with scene(tmp_path, "ab") as it:
        set_aside(it.bench.fleet, "grpc://b:1", on=True)
        loop = asyncio.get_running_loop()
        since_s = loop.time()
        assert await it.host(avoid=Avoid(gone=it.ids("a"))) == "a"
        assert loop.time() - since_s >= 0.19
        assert it.chosen().waited_ms >= 190
        async with asyncio.TaskGroup() as group:
            placed = group.create_task(it.host(avoid=Avoid(gone=it.ids("a"))))
            await asyncio.sleep(0.02)
            set_aside(it.bench.fleet, "grpc://b:1", on=False)
        assert placed.result() == "b"


async def test_a_request_without_another_worker_finds_out_about_a_broken_one(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, "a") as it:
        breaker = it.worker("a").breaker
        breaker.failure(asyncio.get_running_loop().time(), connect=True)
        hold = await it.place()
        assert hold.probe > 0
        # One at a time: the next one waits for what it finds.
        async with asyncio.TaskGroup() as group:
            second = group.create_task(it.place())
            await asyncio.sleep(0.02)
            assert not second.done()
            hold.spoke(asyncio.get_running_loop().time())
        assert second.result().probe > 0
        second.result().ended(asyncio.get_running_loop().time())
        assert breaker.state(asyncio.get_running_loop().time()) is State.CLOSED
        hold.release(0)
        second.result().release(0)


async def test_a_probe_that_its_client_left_lets_the_next_one_try(tmp_path: Path) -> None:
    async with scene(tmp_path, "a") as it:
        it.worker("a").breaker.failure(asyncio.get_running_loop().time(), connect=True)
        (await it.place()).release(asyncio.get_running_loop().time())
        again = await it.place()
        assert again.probe > 0
        again.failed(DEAD, asyncio.get_running_loop().time())
        again.release(0)
        assert it.worker("a").breaker.opened == 2


async def test_workers_of_the_own_zone_go_first_until_they_are_busy(tmp_path: Path) -> None:
    labels = ["a?label.zone=x", "b?label.zone=x", "c?label.zone=y"]
    async with scene(tmp_path, labels=labels, zone="x", zone_spill=0.5) as it:
        for host in "abc":
            it.worker(host).load.capacity = 2
        assert set(await it.hosts()) == {"a", "b"}
        holds = [await it.place() for _ in range(2)]
        assert {hold.worker.url.host for hold in holds} == {"a", "b"}
        assert set(await it.hosts()) == {"a", "b", "c"}
        holds.pop().release(0)
        assert set(await it.hosts()) == {"a", "b"}
        holds.pop().release(0)
        for host in "ab":
            set_aside(it.bench.fleet, f"grpc://{host}:1", on=True)
        assert set(await it.hosts()) == {"c"}


async def test_where_all_are_full_requests_wait_in_line_the_urgent_first(tmp_path: Path) -> None:
    async with scene(tmp_path, "a") as it:
        it.mark("a")
        served: list[str] = []

        async def wait(priority: Priority) -> None:
            hold = await it.place(priority=priority)
            served.append(priority)
            it.mark("a")
            await asyncio.sleep(0)
            hold.release(0)
            it.mark("a", on=False)

        ranks: list[Priority] = ["bulk", "default", "interactive", "bulk", "system"]
        async with asyncio.TaskGroup() as group:
            for rank in ranks:
                group.create_task(wait(rank))
            await asyncio.sleep(0.05)
            assert served == []
            assert sum(one.waiting for one in it.placer.line_counts()["tiny"].values()) == 5
            it.mark("a", on=False)
        assert sorted(served) == sorted(ranks)
        assert it.bench.idle()


async def test_nobody_gets_in_before_those_who_wait(tmp_path: Path) -> None:
    async with scene(tmp_path, "a") as it:
        it.mark("a")

        async def wait(number: int) -> None:
            (await it.place(choice=number)).release(0)

        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(wait(number))
                await asyncio.sleep(0.005)
            it.mark("a", on=False)
            group.create_task(wait(3))
        order = [step.choice for step in it.journey.steps if isinstance(step, Chosen)]
        assert order == [0, 1, 2, 3]


async def test_one_who_is_hard_to_please_keeps_nobody_behind_it_waiting(tmp_path: Path) -> None:
    async with scene(tmp_path, "ab", wait_for_worker_s=5.0) as it:
        it.mark("a", "b")
        async with asyncio.TaskGroup() as group:
            picky = group.create_task(it.host(avoid=Avoid(gone=it.ids("b"))))
            await asyncio.sleep(0.005)
            other = group.create_task(it.host())
            await asyncio.sleep(0.005)
            it.mark("b", on=False)
            async with asyncio.timeout(2):
                assert await other == "b"
            assert not picky.done()
            it.mark("a", on=False)
        assert picky.result() == "a"


async def test_a_full_line_refuses_with_the_time_to_come_again(tmp_path: Path) -> None:
    line = QueueOptions({**DEFAULTS, "default": replace(DEFAULTS["default"], places=1)})
    async with scene(tmp_path, "a", line=line) as it:
        it.mark("a")
        async with asyncio.TaskGroup() as group:
            first = group.create_task(it.host())
            await asyncio.sleep(0.01)
            with pytest.raises(SmgError) as caught:
                await it.place()
            assert (caught.value.status, caught.value.code) == (503, "overloaded")
            assert caught.value.retry_after_s is not None
            assert caught.value.retry_after_s >= 1
            assert dict(it.journey.unplaced) == dict.fromkeys(it.ids("a"), "full")
            it.mark("a", on=False)
        assert first.result() == "a"


async def test_who_waits_too_long_is_told_so_and_who_leaves_leaves_no_trace(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, "a") as it:
        it.mark("a")
        soon_s = asyncio.get_running_loop().time() + 0.05
        with pytest.raises(SmgError) as caught:
            await it.place(deadline_s=soon_s)
        assert caught.value.code == "overloaded"
        async with asyncio.TaskGroup() as group:
            task = group.create_task(it.place())
            await asyncio.sleep(0.01)
            task.cancel()
        assert task.cancelled()
        it.mark("a", on=False)
        await asyncio.sleep(0.01)
        assert it.bench.idle()
        assert await it.host() == "a"
        counts = it.placer.line_counts()["tiny"]["default"]
        assert (counts.waiting, counts.served, counts.expired, counts.left) == (0, 0, 1, 1)


async def test_a_turn_that_comes_as_its_client_leaves_is_given_back(tmp_path: Path) -> None:
    async with scene(tmp_path, "a") as it:
        it.mark("a")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(it.place())
            await asyncio.sleep(0.01)
            it.mark("a", on=False)
            room = it.placer._rooms["tiny"]
            room._serve()
            assert not it.bench.idle()
            task.cancel()
        assert task.cancelled()
        assert it.bench.idle()


async def test_those_in_line_are_told_when_there_is_nobody_left_to_wait_for(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, "a") as it:
        it.mark("a")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_error(it))
            await asyncio.sleep(0.01)
            set_aside(it.bench.fleet, "grpc://a:1", on=True)
        assert task.result().code == "no_worker_available"


async def _error(it: Scene) -> SmgError:
    with pytest.raises(SmgError) as caught:
        await it.place()
    return caught.value


async def test_with_shed_nobody_waits_and_nobody_is_sent_to_the_overloaded(tmp_path: Path) -> None:
    async with scene(tmp_path, "ab", shed=True) as it:
        it.strain("a")
        assert set(await it.hosts()) == {"b"}
        it.strain("b")
        assert (await _error(it)).code == "overloaded"
        it.mark("a", "b")
        error = await _error(it)
        assert (error.code, error.status) == ("overloaded", 503)
        assert error.retry_after_s is not None


async def test_a_target_that_is_broken_is_unavailable_unless_it_may_be_tried(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, "ab") as it:
        it.mark("a")
        assert await it.host(target="grpc://a:1") == "a"
        assert it.chosen().policy == "target"
        it.worker("a").breaker.failure(asyncio.get_running_loop().time(), connect=True)
        with pytest.raises(SmgError) as caught:
            await it.place(target="grpc://a:1")
        assert caught.value.code == "worker_unavailable"
        await asyncio.sleep(0.08)
        assert (await it.place(target="grpc://a:1")).probe > 0


async def test_the_journey_says_when_a_key_decided(tmp_path: Path) -> None:
    async with scene(tmp_path, policy="consistent_hashing") as it:
        await it.host(key="k")
        assert it.chosen().key
        await it.host()
        assert not it.chosen().key
        assert (it.chosen().policy, it.chosen().of, it.chosen().prompt_tokens) == (
            "consistent_hashing",
            3,
            3,
        )
