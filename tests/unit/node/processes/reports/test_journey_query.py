"""What a control process tells of requests that other processes of its node served."""

import asyncio

import msgspec
import pytest

from smg_node.cluster.reports.journey_search import EXPLAIN, Explanations
from smg_node.core.errors import SmgError
from smg_node.pipeline.observability.journey_log import Journal, unpack
from smg_node.processes.ipc.ipc_link import AnswerError, LinkCutError
from smg_node.processes.reports.journey_query import Journeys
from smg_node.processes.reports.journey_query import journeys_reply as told_here
from support.http.fake_cluster import member_row
from support.http.journeys import told
from support.state.fake_shared_state import SharedWorld


class Node:
    """A control process and two data processes; `answers` are said instead of what they know."""

    def __init__(self) -> None:
        self.world = SharedWorld("a")
        self.journals = {name: Journal("a") for name in ("", "1", "2")}
        self.answers: dict[str, bytes | Exception] = {}
        journeys = Journeys(lambda: ["1", "2"], self._ask, patience_s=0.02)
        self.explanations = Explanations(
            "a",
            self.journals[""],
            lambda: [member_row("a", "alive", me=True)],
            self.world.meshes["a"],
            journeys.find,
        )

    async def _ask(self, process: str, question: bytes) -> bytes:
        answer = self.answers.get(process, told_here(self.journals[process], question))
        if isinstance(answer, TimeoutError):
            await asyncio.sleep(9)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_request_is_found_in_whichever_process_served_it() -> None:
    node = Node()
    journey = told(node.journals["2"], "req_1", answer="77")
    for wanted in ("req_1", "chatcmpl-77"):
        assert (await node.explanations.explain(wanted)).journeys == (journey,)
        assert (await node.explanations.explain(wanted, node="a")).journeys == (journey,)


async def test_one_id_in_several_processes_is_told_whole() -> None:
    node = Node()
    journeys = [told(journal, "req_1") for journal in node.journals.values()]
    found = await node.explanations.explain("req_1")
    assert len(found.journeys) == len(journeys) == 3


async def test_other_nodes_are_told_what_all_processes_know() -> None:
    node = Node()
    journey = told(node.journals["1"], "req_1")
    mesh = SharedWorld("b", "a")
    Explanations(
        "a", node.journals[""], list, mesh.meshes["a"], Journeys(lambda: ["1", "2"], node._ask).find
    )
    other = Explanations(
        "b", Journal("b"), lambda: [member_row("a", "alive", me=False)], mesh.meshes["b"]
    )
    assert (await other.explain("req_1")).journeys == (journey,)
    assert EXPLAIN == "node.explain"


@pytest.mark.parametrize(
    "answer",
    [
        TimeoutError(),
        LinkCutError("it is gone"),
        AnswerError("it could not"),
        b"",
        b"\xc1",
        b"\x91\xc4\x01x",
        b"\x91\xa1\xff",
    ],
)
async def test_a_process_that_cannot_tell_keeps_nobody_from_it(answer: bytes | Exception) -> None:
    node = Node()
    node.answers["1"] = answer
    journey = told(node.journals["2"], "req_1")
    assert (await node.explanations.explain("req_1")).journeys == (journey,)
    with pytest.raises(SmgError, match="no node that answers knows"):
        await node.explanations.explain("req_2")


def test_a_question_may_be_anything() -> None:
    journal = Journal("a")
    told(journal, "req_1")
    assert msgspec.msgpack.decode(told_here(journal, b"\xff" * 9_000)) == []
    [packed] = msgspec.msgpack.decode(told_here(journal, b"req_1"))
    assert unpack(packed).request_id == "req_1"
