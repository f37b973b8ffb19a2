"""An operator's answers, from any node, to runs that wait on any other."""

import asyncio

import pytest

from smg_node.cluster.approvals.lazy_approvals import TOPIC
from smg_node.core.errors import ErrorKind, SmgError
from support.mcp.waiting_nodes import WaitingNodes, WaitingProcess

NAMES = ("a", "b", "c")


async def test_any_node_lists_what_waits_on_all() -> None:
    nodes = WaitingNodes(*NAMES)
    async with nodes["c"].run("first"), nodes["a"].run("second"):
        for name in NAMES:
            found = await nodes.service(name).runs()
            assert [(run.node, run.tool) for run in found.runs] == [("c", "first"), ("a", "second")]
            assert (found.left_out, found.silent) == (0, {})


@pytest.mark.parametrize("at", NAMES)
@pytest.mark.parametrize("approve", [True, False])
async def test_any_node_takes_the_answer_to_where_it_waits(at: str, approve: bool) -> None:
    nodes = WaitingNodes(*NAMES)
    async with nodes["b"].run() as task:
        [run] = (await nodes.service("c").runs()).runs
        service = nodes.service(at)
        await service.answer(await service.run(run.id), approve=approve, reason="why not")
        assert (await task).approve is approve
        with pytest.raises(SmgError) as again:
            await nodes.service("a").run(run.id)
        with pytest.raises(SmgError) as raced:
            await nodes.service("c").answer(run, approve=True, reason="")
    for error in (again.value, raced.value):
        assert (error.kind, error.code) == (ErrorKind.CONFLICT, "approval_already_answered")


async def test_two_operators_at_once_give_one_answer() -> None:
    nodes = WaitingNodes(*NAMES)
    async with nodes["b"].run() as task:
        [run] = (await nodes.service("a").runs()).runs
        said = await asyncio.gather(
            nodes.service("a").answer(run, approve=True, reason=""),
            nodes.service("c").answer(run, approve=False, reason=""),
            return_exceptions=True,
        )
        answer = await task
    [lost] = [one for one in said if one is not None]
    assert isinstance(lost, SmgError)
    assert lost.code == "approval_already_answered"
    assert answer.approve is (said[0] is None)


async def test_what_is_over_or_unknown_is_not_found() -> None:
    nodes = WaitingNodes(*NAMES)
    async with nodes["b"].run(wait_s=0.02) as task:
        [run] = (await nodes.service("a").runs()).runs
        await task
    for wanted in (run.id, "mcpa_nonsense", "x" * 1_000):
        with pytest.raises(SmgError) as error:
            await nodes.service("a").run(wanted)
        assert (error.value.kind, error.value.code) == (
            ErrorKind.NOT_FOUND,
            "approval_not_found",
        )
    with pytest.raises(SmgError) as late:
        await nodes.service("a").answer(run, approve=True, reason="")
    assert late.value.code == "approval_not_found"


async def test_members_that_cannot_be_asked_are_named() -> None:
    nodes = WaitingNodes(*NAMES)
    nodes.world.meshes["a"].silent.add("c")

    async def nonsense(question: bytes, caller: str) -> bytes:
        return b"nonsense"

    nodes.world.meshes["b"].answer(TOPIC, nonsense)
    async with nodes["a"].run():
        found = await nodes.service("a").runs()
        with pytest.raises(SmgError) as error:
            await nodes.service("a").run("mcpa_1")
    assert len(found.runs) == 1
    assert found.silent == {
        "b": "it says nothing that is understood here",
        "c": "no answer in time",
    }
    assert "c cannot be asked" in error.value.message


async def test_a_dead_member_is_not_asked() -> None:
    nodes = WaitingNodes(*NAMES, dead="c")
    nodes.world.meshes["a"].silent.add("c")
    assert (await nodes.service("a").runs()).silent == {}


async def test_a_node_that_leaves_while_it_is_told_leaves_a_doubt() -> None:
    nodes = WaitingNodes(*NAMES)
    async with nodes["c"].run():
        [run] = (await nodes.service("a").runs()).runs
        nodes.world.meshes["a"].silent.add("c")
        with pytest.raises(SmgError) as error:
            await nodes.service("a").answer(run, approve=True, reason="")
    assert error.value.kind is ErrorKind.UPSTREAM_TIMEOUT


async def test_a_node_alone_answers_for_itself() -> None:
    process = WaitingProcess("a")
    process.connect()
    async with process.run() as task:
        service = process.approvals.service()
        [run] = (await service.runs()).runs
        await service.answer(run, approve=True, reason="")
        assert (await task).approve


# ── Several processes ────────────────────────────────────────────────────────


async def test_runs_of_all_processes_of_a_node_are_answered() -> None:
    nodes = WaitingNodes("a", "b")
    data = {name: WaitingProcess("b", seed) for seed, name in enumerate("12", 7)}
    silent: list[str] = []

    async def siblings(question: bytes) -> tuple[list[bytes], list[str]]:
        return [process.approvals.reply(question) for process in data.values()], silent

    nodes["b"].approvals.siblings = siblings
    assert (await nodes.service("a").runs()).runs == []
    async with data["2"].run("there") as task, nodes["b"].run("here"):
        found = await nodes.service("a").runs()
        assert [run.tool for run in found.runs] == ["there", "here"]
        service = nodes.service("a")
        run = await service.run(found.runs[0].id)
        await service.answer(run, approve=True, reason="")
        assert (await task).approve
        silent.append("1-4711")
        assert "1-4711" in (await service.runs()).silent["b"]
        gone = found.runs[1]
        await service.answer(gone, approve=False, reason="")
        with pytest.raises(SmgError) as error:
            await service.answer(run, approve=True, reason="")
        assert error.value.code == "approval_already_answered"
