import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pytest

from smg_node.cluster.reports.journey_search import EXPLAIN, Explanations
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.node import Explained, MemberRow
from smg_node.pipeline.observability.journey_log import SAME_ID_MAX, Journal
from support.http.fake_cluster import member_row
from support.http.journeys import BEGAN_MS, told, vast
from support.state.fake_shared_state import SharedWorld

NAMES = ("a", "b", "c")


@dataclass
class Nodes:
    """Three nodes that see each other, and what each of them keeps."""

    world: SharedWorld
    journals: dict[str, Journal]
    explanations: dict[str, Explanations]
    states: dict[str, str]

    async def explain(self, wanted: str, *, at: str = "a", node: str = "") -> Explained:
        return await self.explanations[at].explain(wanted, node=node)


def nodes() -> Nodes:
    world = SharedWorld(*NAMES)
    states = dict.fromkeys(NAMES, "alive")

    def rows(me: str) -> Sequence[MemberRow]:
        return [member_row(name, state, me=name == me) for name, state in sorted(states.items())]

    journals = {name: Journal(name) for name in NAMES}
    explanations = {
        name: Explanations(name, journals[name], lambda name=name: rows(name), world.meshes[name])  # type: ignore[misc]  # bound now
        for name in NAMES
    }
    return Nodes(world, journals, explanations, states)


async def test_any_node_tells_of_a_request_that_another_served() -> None:
    cluster = nodes()
    journey = told(cluster.journals["b"], "req_1", answer="77")
    for name in NAMES:
        for wanted in ("req_1", "chatcmpl-77"):
            found = await cluster.explain(wanted, at=name)
            assert (found.wanted, found.node) == (wanted, name)
            assert found.journeys == (journey,)
            assert found.journeys[0].node == "b"
            assert found.silent == {}


async def test_a_request_that_is_still_under_way_elsewhere_is_told() -> None:
    cluster = nodes()
    cluster.journals["c"].begin("req_1", "chat", "m", BEGAN_MS)
    found = await cluster.explain("req_1")
    assert found.journeys[0].ended_ms is None


async def test_one_id_on_several_nodes_is_told_whole_newest_first() -> None:
    cluster = nodes()
    for at, name in enumerate("cab"):
        told(cluster.journals[name], "req_1", BEGAN_MS + at)
    found = await cluster.explain("req_1")
    assert [journey.node for journey in found.journeys] == ["b", "a", "c"]
    for name in NAMES:
        for at in range(SAME_ID_MAX):
            told(cluster.journals[name], "req_1", BEGAN_MS + at)
    assert len((await cluster.explain("req_1")).journeys) == SAME_ID_MAX


async def test_who_cannot_be_asked_is_named() -> None:
    cluster = nodes()
    told(cluster.journals["a"], "req_1")
    cluster.world.meshes["a"].silent.add("b")
    found = await cluster.explain("req_1")
    assert len(found.journeys) == 1
    assert found.silent == {"b": "no answer in time"}


async def test_a_request_that_nobody_knows_is_not_found_with_all_reasons() -> None:
    cluster = nodes()
    cluster.world.meshes["a"].silent.add("b")
    cluster.states["c"] = "dead"
    with pytest.raises(SmgError) as caught:
        await cluster.explain("req_" + "9" * 1000)
    error = caught.value
    assert (error.kind, error.code) == (ErrorKind.NOT_FOUND, "request_not_found")
    assert "b cannot be asked: no answer in time; c cannot be asked: it is dead" in error.message
    assert len(error.message) < 500


async def test_the_dead_are_not_asked_and_not_missed_where_the_request_is_found() -> None:
    cluster = nodes()
    told(cluster.journals["b"], "req_1")
    cluster.states["c"] = "dead"
    cluster.world.meshes["a"].silent.add("c")
    assert (await cluster.explain("req_1")).silent == {}


async def test_only_the_node_that_is_named_is_asked() -> None:
    cluster = nodes()
    for name in NAMES:
        told(cluster.journals[name], "req_1")
    cluster.world.meshes["a"].silent.add("c")
    here = await cluster.explain("req_1", node="a")
    there = await cluster.explain("req_1", node="b")
    assert [journey.node for journey in here.journeys] == ["a"]
    assert [journey.node for journey in there.journeys] == ["b"]
    assert (here.silent, there.silent) == ({}, {})
    with pytest.raises(SmgError, match="c cannot be asked: no answer in time"):
        await cluster.explain("req_1", node="c")
    with pytest.raises(SmgError, match="no member is called 'nobody'"):
        await cluster.explain("req_1", node="nobody")


async def test_a_node_alone_knows_its_own() -> None:
    journal = Journal("a")
    told(journal, "req_1")
    alone = Explanations("a", journal, lambda: [member_row("a", me=True)], None)
    assert len((await alone.explain("req_1")).journeys) == 1
    with pytest.raises(SmgError, match="nobody cannot be asked: this node is alone"):
        await alone.explain("req_1", node="nobody")


@pytest.mark.parametrize(
    "nonsense",
    [b"", b"\xff" * 9, msgspec.msgpack.encode([b"no journey"]), msgspec.msgpack.encode({"a": 1})],
)
async def test_a_member_that_makes_no_sense_is_named(nonsense: bytes) -> None:
    cluster = nodes()
    told(cluster.journals["a"], "req_1")

    async def answer(payload: bytes, caller: str) -> bytes:
        return nonsense

    cluster.world.answers["b"][EXPLAIN] = answer
    found = await cluster.explain("req_1")
    assert found.silent == {"b": "it says nothing that is understood here"}


async def test_an_answer_between_nodes_stays_below_what_the_mesh_carries() -> None:
    cluster = nodes()
    journal = cluster.journals["b"]
    for _ in range(SAME_ID_MAX + 4):
        journey = journal.begin("req_1", "chat", "m", BEGAN_MS)
        journey.steps = vast("req_1").steps
    answer = await cluster.world.answers["b"][EXPLAIN](b"req_1" + b"\xff" * 2000, "a")
    assert msgspec.msgpack.decode(answer) == []
    answer = await cluster.world.answers["b"][EXPLAIN](b"req_1", "a")
    assert len(msgspec.msgpack.decode(answer)) == SAME_ID_MAX
    assert len(answer) < 1_000_000
    assert len((await cluster.explain("req_1")).journeys) == SAME_ID_MAX


async def test_silent_members_are_waited_for_together() -> None:
    cluster = nodes()
    asking, most = 0, 0

    async def slow(payload: bytes, caller: str) -> bytes:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await asyncio.sleep(0.01)
        asking -= 1
        return msgspec.msgpack.encode([])

    told(cluster.journals["a"], "req_1")
    for name in "bc":
        cluster.world.answers[name][EXPLAIN] = slow
    await cluster.explain("req_1")
    assert most == 2
