"""Runs that wait for an operator's word in one process: answered once, in time, or not at all."""

import asyncio
from typing import Any

import msgspec
import pytest

from smg_node.cluster.approvals.approval_messages import Question, Reply, pack, read_reply
from smg_node.cluster.approvals.waiting_runs import ANSWERED_MAX
from smg_node.http.ports.tool_approvals import WaitingRun
from support.mcp.waiting_nodes import WaitingProcess


def asked(process: WaitingProcess, *question: Any) -> Reply:
    reply = read_reply(process.approvals.reply(pack(Question(*question))))
    assert reply is not None
    return reply


def waiting(process: WaitingProcess) -> list[WaitingRun]:
    return list(asked(process).runs)


async def test_a_run_waits_and_says_what_it_is_about() -> None:
    process = WaitingProcess("a")
    async with process.run("drop", '{"table": "users"}', wait_s=60):
        [run] = waiting(process)
        assert process.waiting() == 1
    assert (run.node, run.tenant, run.key_id, run.model) == ("a", "acme", "k-1", "m")
    assert (run.server, run.tool, run.arguments) == ("crm", "drop", '{"table": "users"}')
    assert (run.request_id, run.cut) == ("r-1", False)
    assert abs(run.until_ms - run.since_ms - 60_000) < 5_000
    assert process.waiting() == 0


@pytest.mark.parametrize("approve", [True, False])
async def test_it_is_answered_once(approve: bool) -> None:
    process = WaitingProcess("a")
    async with process.run() as task:
        [run] = waiting(process)
        assert asked(process, run.id).runs == (run,)
        first = asked(process, run.id, approve, "not \x1b[1mtoday")
        second = asked(process, run.id, not approve)
        answer = await task
    assert (first.done, first.before) == (True, False)
    assert (second.done, second.before) == (False, True)
    assert answer.approve is approve
    if not approve:
        assert answer.why.startswith("an operator did not allow it: not")
        assert "\x1b" not in answer.why
    assert asked(process, run.id).before
    assert process.counted("approved" if approve else "denied") == 1


async def test_no_without_a_reason_is_no() -> None:
    process = WaitingProcess("a")
    async with process.run() as task:
        asked(process, waiting(process)[0].id, False)
        assert (await task).why == "an operator did not allow it"


async def test_it_ends_when_its_time_is_over() -> None:
    process = WaitingProcess("a")
    async with process.run(wait_s=0.05) as task:
        [run] = waiting(process)
        answer = await task
    assert (answer.approve, answer.why) == (False, "nobody allowed it in time")
    late = asked(process, run.id, True)
    assert late == Reply()
    assert process.counted("timeout") == 1


async def test_what_has_no_time_left_waits_for_nobody() -> None:
    process = WaitingProcess("a")
    async with process.run(wait_s=-1.0) as task:
        assert not (await task).approve
    assert waiting(process) == []


async def test_a_client_that_leaves_ends_it() -> None:
    process = WaitingProcess("a")
    async with process.run() as task:
        [run] = waiting(process)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asked(process, run.id, True) == Reply()
    assert waiting(process) == []
    assert process.counted("cancelled") == 1


async def test_a_node_that_drains_waits_for_nobody() -> None:
    process = WaitingProcess("a")
    process.connect()
    async with process.run() as task:
        process.draining = True
        answer = await task
    assert "the node stops taking work" in answer.why
    assert process.counted("drained") == 1


async def test_so_many_wait_and_no_more() -> None:
    process = WaitingProcess("a", waiting_max=2)
    async with (
        process.run(tenant="b"),
        process.run(tenant="c"),
        process.run() as third,
        process.run(tenant="") as nobodys,
    ):
        for answer in (await third, await nobodys):
            assert "too many" in answer.why
            assert answer.crowded
        assert len(waiting(process)) == 2
    assert process.counted("refused") == 2
    async with process.run() as again:
        assert not again.done()


async def test_a_tenant_has_a_quarter_and_leaves_room_for_others() -> None:
    process = WaitingProcess("a", waiting_max=8)
    async with process.run(), process.run() as second, process.run() as third:
        answer = await third
        assert (answer.approve, answer.crowded) == (False, True)
        assert "2 of this tenant, and no tenant may have more than 2" in answer.why
        async with process.run(tenant="b") as other, process.run(tenant="") as nobodys:
            assert not other.done()
            assert not nobodys.done()
        asked(process, waiting(process)[0].id, True)
        async with process.run() as again:
            assert not again.done()
            assert not second.done()
    assert process.counted("refused") == 1


async def test_where_there_are_no_tenants_nobody_has_a_share() -> None:
    process = WaitingProcess("a", waiting_max=4)
    async with (
        process.run(tenant=""),
        process.run(tenant=""),
        process.run(tenant="") as third,
    ):
        assert not third.done()


async def test_ids_of_answered_runs_are_kept_in_a_bounded_number() -> None:
    process = WaitingProcess("a")
    ids: list[str] = []
    for _ in range(ANSWERED_MAX + 1):
        async with process.run() as task:
            [run] = waiting(process)
            ids.append(run.id)
            asked(process, run.id, True)
            await task
    assert asked(process, ids[0]) == Reply()
    assert asked(process, ids[1]).before
    assert asked(process, ids[-1]).before


async def test_a_list_has_the_longest_wait_first_and_the_beginnings_of_arguments() -> None:
    process = WaitingProcess("a")
    text = '"' + "ä" * 100_000 + '"'
    async with process.run("first", text), process.run("second"):
        runs = waiting(process)
        [whole] = asked(process, runs[0].id).runs
    assert [run.tool for run in runs] == ["first", "second"]
    assert (len(runs[0].arguments), runs[0].cut) == (500, True)
    assert (len(whole.arguments), whole.cut) == (64_000, True)


@pytest.mark.parametrize(
    "said", [b"", b"\xc1", b"x", msgspec.msgpack.encode([1]), b"\x81\xa2id\x01"]
)
async def test_what_is_no_question_is_answered_by_nothing(said: bytes) -> None:
    process = WaitingProcess("a")
    assert process.approvals.reply(said) == b""
    async with process.run():
        assert process.approvals.reply(said) == b""
        assert len(waiting(process)) == 1
