"""What every node counts, told by any of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from smg_node.cluster.reports import cluster_metrics as told
from smg_node.cluster.reports.cluster_metrics import (
    ASKING_MAX,
    NUMBERS,
    Numbers,
    own_numbers,
    rows_of,
)
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.cluster_metrics import ClusterNumbers, NodeNumbers
from smg_node.http.ports.node import Health, MemberRow
from smg_node.telemetry.metrics.cluster_metrics import KNOWN, WATCHED
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.meters import Meters
from support.http.fake_cluster import member_row
from support.state.fake_shared_state import SharedWorld

NAMES = ("a", "b", "c")
ALL = [metric.name for metric in WATCHED]
CHATS = declared.HTTP_REQUESTS.name
SECONDS = declared.HTTP_SECONDS.name


@dataclass
class Nodes:
    """Three nodes that see each other, what each of them counts, and how each is."""

    world: SharedWorld
    meters: dict[str, Meters]
    desks: dict[str, Numbers]
    states: dict[str, str]

    async def numbers(self, *names: str, at: str = "a") -> ClusterNumbers:
        return await self.desks[at].numbers(names or ALL)


def nodes() -> Nodes:
    world = SharedWorld(*NAMES)
    states = dict.fromkeys(NAMES, "alive")

    def rows(me: str) -> Sequence[MemberRow]:
        return [member_row(name, state, me=name == me) for name, state in sorted(states.items())]

    meters = {name: Meters(CollectorRegistry(), version="1.0") for name in NAMES}
    desks = {
        name: Numbers(
            name,
            "1.0",
            own_numbers(meters[name]),
            lambda name=name: rows(name),  # type: ignore[misc]  # bound now
            world.meshes[name],
            health=lambda: Health(True, False, True, 0, 1, ("the node is draining",), ()),
            now_s=lambda: 7.5,
        )
        for name in NAMES
    }
    return Nodes(world, meters, desks, states)


_STANDING = nodes()


async def test_any_node_tells_what_all_count() -> None:
    cluster = nodes()
    for count, name in enumerate(NAMES, start=1):
        for _ in range(count):
            cluster.meters[name].http("/v1/chat/completions", "POST", 200, 0.02)
    for at in NAMES:
        said = await cluster.numbers(CHATS, at=at)
        assert said.silent == {}
        assert {
            name: [(list(row.labels), list(row.values)) for row in node.rows[CHATS]]
            for name, node in said.nodes.items()
        } == {
            name: [(["/v1/chat/completions", "POST", "200"], [count])]
            for count, name in enumerate(NAMES, start=1)
        }
        assert {(node.version, node.at_s, node.draining) for node in said.nodes.values()} == {
            ("1.0", 7.5, True)
        }


async def test_a_histogram_is_its_counts_and_their_sum() -> None:
    cluster = nodes()
    for seconds in (0.02, 0.3, 9_999.0):
        cluster.meters["b"].http("/x", "POST", 200, seconds)
    said = await cluster.numbers(SECONDS)
    (row,) = said.nodes["b"].rows[SECONDS]
    assert len(row.values) == len(declared.HTTP_SECONDS.buckets) + 2
    assert row.values[:3] == [0, 0, 1]
    assert row.values[-2:] == [3, pytest.approx(9_999.32)]


async def test_only_what_is_asked_for_is_read() -> None:
    cluster = nodes()

    def never() -> dict[tuple[str, ...], float]:
        raise AssertionError("nobody asked for it")

    cluster.meters["a"].watch(declared.WORKER_INFLIGHT, never)
    said = await cluster.numbers(CHATS, "process_cpu_seconds_total")
    here = said.nodes["a"].rows
    assert set(here) <= {CHATS, "process_cpu_seconds_total"}
    assert here["process_cpu_seconds_total"][0].values[0] > 0


async def test_who_is_silent_is_named_and_who_is_gone_is_not_asked() -> None:
    cluster = nodes()
    cluster.states["b"] = "dead"
    cluster.world.answers["c"][NUMBERS] = _nonsense
    said = await cluster.numbers()
    assert set(said.nodes) == {"a"}
    assert said.silent == {"c": "it says nothing that is understood here"}


async def _nonsense(payload: bytes, caller: str) -> bytes:
    return b"\xc1"


async def test_a_node_alone_tells_of_itself() -> None:
    cluster = nodes()
    lone = Numbers(
        "a",
        "1.0",
        own_numbers(cluster.meters["a"]),
        lambda: [member_row("a", me=True)],
        None,
        health=lambda: Health(True, True, False, 1, 1, (), ()),
        now_s=lambda: 1.0,
    )
    said = await lone.numbers(ALL)
    assert (list(said.nodes), said.silent) == (["a"], {})


async def test_too_many_who_ask_at_once_are_told_to_come_again() -> None:
    cluster = nodes()
    gate = asyncio.Event()

    async def slow(names: object) -> list[object]:
        await gate.wait()
        return []

    desk = cluster.desks["a"]
    desk._read = slow  # type: ignore[assignment]  # what is read does not matter here
    async with asyncio.TaskGroup() as group:
        for _ in range(ASKING_MAX):
            group.create_task(desk.numbers(ALL))
        await asyncio.sleep(0)
        with pytest.raises(SmgError) as refused:
            await desk.numbers(ALL)
        gate.set()
    assert refused.value.kind is ErrorKind.OVERLOADED
    assert (await desk.numbers(ALL)).silent == {}


async def test_an_answer_that_is_too_large_is_cut_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(told, "ANSWER_BYTES_MAX", 4_000)
    cluster = nodes()
    for route in range(200):
        cluster.meters["b"].http(f"/{route}", "GET", 200, 0.1)
    node = (await cluster.numbers(CHATS)).nodes["b"]
    assert 0 < len(node.rows[CHATS]) < 200
    assert node.cut == 200 - len(node.rows[CHATS])


@given(st.binary(max_size=64))
@settings(max_examples=50)
def test_a_question_of_any_bytes_is_answered(payload: bytes) -> None:
    answered = _STANDING.world.answers["b"][NUMBERS]

    async def ask() -> bytes:
        return await answered(payload, "a")

    answer = asyncio.run(ask())
    assert set(msgspec.msgpack.decode(answer, type=NodeNumbers).rows) <= KNOWN.keys()


def test_what_is_not_asked_for_is_left_out() -> None:
    meters = Meters(CollectorRegistry(), version="1.0")
    meters.http("/x", "POST", 200, 0.1)
    assert list(rows_of(meters.registry.collect(), [CHATS])) == [CHATS]
