"""Members that share limits over real sockets, in one process: what they admit together is what was allowed."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from smg_mesh.escrow.audit.auditor import overspent
from smg_mesh.shared import Rights, Shared
from smg_mesh.state.limits.limit_rule import Amount, LimitRule
from support.mesh.mesh_cluster import Cluster, agree, cluster, key_file, until
from support.mesh.shared_state_members import Node, add_node, make_shared

NOWHERE = "127.0.0.1:1"
"""A seed that never answers: who has one waits for the others it expects."""
SECOND = "#requests/1000"
HOUR = "#requests/3600000"


def per_second(amount: int, mode: str = "strict") -> LimitRule:
    return LimitRule(amounts=(Amount("requests", amount, 1_000),), mode=mode)  # type: ignore[arg-type]  # a word of the test's


def per_hour(amount: int) -> LimitRule:
    return LimitRule(amounts=(Amount("requests", amount, 3_600_000),), mode="strict")


def admit(rights: Rights, key: str, admitted: Counter[int]) -> bool:
    """Ask for one, as admission does."""
    share = rights.share(key)
    assert share is not None
    share.offered += 1
    if share.left < 1:
        share.wants_more = True
        return False
    share.left -= 1
    share.spent += 1
    if share.left < share.low:
        share.wants_more = True
    admitted[share.window] += 1
    return True


async def offer(
    nodes: Sequence[Node], key: str, admitted: Counter[int], *, for_s: float, each: int = 4
) -> None:
    """Ask at every node, again and again."""
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        for node in nodes:
            for _ in range(each):
                admit(node.shared.rights, key, admitted)
        await asyncio.sleep(0.005)


async def three(nodes: Cluster, folder: Path | None, *, encrypted: bool = False) -> list[Node]:
    """Return three members that begin a roster together."""
    keyed: dict[str, Any] = (
        {"key_file": key_file(folder)} if encrypted and folder is not None else {}
    )
    a = await add_node(nodes, "a", NOWHERE, folder=folder, expect=3, **keyed)
    others = [await add_node(nodes, name, a, folder=folder, expect=3, **keyed) for name in "bc"]
    everybody = [a, *others]
    await until(lambda: agree([node.mesh for node in everybody]))
    await until(lambda: all(node.shared.held for node in everybody))
    return everybody


def has_limit(node: Node, key: str) -> bool:
    return node.shared.limits.get(key) is not None


async def owned(nodes: Sequence[Node], key: str) -> Node:
    """Return the owner of a key, once there is one and all have the roster."""

    def owners() -> list[Node]:
        for node in nodes:
            node.shared.rights.share(key)
        reports = [(node, node.shared.rights.report(key)) for node in nodes]
        return [node for node, report in reports if report is not None and report.term]

    await until(owners)
    return owners()[0]


def of(node: Node, what: str, detail: str) -> int:
    return node.shared.counters().get((what, detail), 0)


@pytest.mark.parametrize("encrypted", [True, False])
async def test_three_nodes_admit_together_what_is_allowed_and_no_more(
    tmp_path: Path,
    encrypted: bool,
) -> None:
    async with cluster() as nodes:
        everybody = await three(nodes, tmp_path, encrypted=encrypted)
        everybody[1].shared.limits.put(per_second(60), version=0)
        await until(lambda: all(has_limit(node, SECOND) for node in everybody))
        await owned(everybody, SECOND)
        admitted: Counter[int] = Counter()
        await offer(everybody, SECOND, admitted, for_s=4.5)
        assert max(admitted.values()) <= 60
        # Whole windows of a machine that may be busy: most of it was used in the best of them.
        assert max(admitted.values()) >= 55
        rows = [row for node in everybody for row in node.shared.rights.rows()]
        assert overspent(rows) == []
        assert {row.name for row in rows} == {"a", "b", "c"}
        assert all(node.shared.counters().get(("state_fault", ""), 0) == 0 for node in everybody)
        rosters = [node.shared.rights.report(SECOND) for node in everybody]
        assert all(report is not None and report.roster == ("a", "b", "c") for report in rosters)
        assert (tmp_path / "a" / "rights" / "roster.json").exists()


async def test_the_death_of_the_owner_costs_no_more_than_a_moment() -> None:
    async with cluster() as nodes:
        everybody = await three(nodes, None)
        everybody[0].shared.limits.put(per_second(60), version=0)
        await until(lambda: all(has_limit(node, SECOND) for node in everybody))
        owner = await owned(everybody, SECOND)
        admitted: Counter[int] = Counter()
        await offer(everybody, SECOND, admitted, for_s=1.5)
        await nodes.crash(owner.mesh)
        rest = [node for node in everybody if node is not owner]
        task = asyncio.gather(offer(rest, SECOND, admitted, for_s=4.0))
        await owned(rest, SECOND)
        await task
        assert max(admitted.values()) <= 60
        nothing = owner.shared.rights.share(SECOND)
        assert nothing is not None
        assert nothing.left == 0


async def test_who_waits_for_rights_goes_on_when_they_come() -> None:
    async with cluster() as nodes:
        everybody = await three(nodes, None)
        everybody[0].shared.limits.put(per_second(300), version=0)
        await until(lambda: all(has_limit(node, SECOND) for node in everybody))
        owner = await owned(everybody, SECOND)
        other = next(node for node in everybody if node is not owner)

        async def refilled() -> bool:
            """Empty the share early in a window, and wait for more."""
            share = other.shared.rights.share(SECOND)
            assert share is not None
            share.spent += share.left
            share.offered += share.left
            share.left = 0
            return await other.shared.rights.refilled(share, 1, 0.5)

        heard = [await refilled() for _ in range(3)]
        assert any(heard)
        missing = everybody[0].shared.rights
        assert missing.share("nothing#requests/1000") is None


async def test_without_limits_no_packet_is_sent_and_nobody_wakes() -> None:
    async with cluster() as nodes:
        everybody = await three(nodes, None)
        await asyncio.sleep(0.5)
        for node in everybody:
            assert of(node, "rights_packets", "out") == of(node, "rights_packets", "in") == 0
            assert node.shared.rights.share(SECOND) is None
            assert node.shared.rights.rows() == []


async def alone(folder: Path, tasks: asyncio.TaskGroup) -> tuple[Shared, asyncio.Task[None]]:
    shared = make_shared("a", folder)
    await shared.open()
    return shared, tasks.create_task(shared.run())


async def test_a_node_alone_keeps_a_budget_over_its_restart(tmp_path: Path) -> None:
    admitted: Counter[int] = Counter()
    async with asyncio.TaskGroup() as tasks:
        for life in range(3):
            shared, running = await alone(tmp_path, tasks)
            rights = shared.rights
            if life == 0:
                shared.limits.put(per_hour(20_000), version=0)

            def owns(rights: Rights = rights) -> bool:
                rights.share(HOUR)
                report = rights.report(HOUR)
                return report is not None and report.term > 0

            await until(owns)
            before = sum(admitted.values())
            end_s = time.monotonic() + 20
            while sum(admitted.values()) < before + 100 and time.monotonic() < end_s:
                admit(rights, HOUR, admitted)
                await asyncio.sleep(0.002)
            assert sum(admitted.values()) == before + 100
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await shared.close()
            nothing = rights.share(HOUR)
            assert nothing is not None
            assert nothing.left == 0
        # What the lives before had minted and not spent is lost; what they had spent is not to be had again.
        shared, running = await alone(tmp_path, tasks)
        await until(lambda: owned_alone(shared))
        end_s = time.monotonic() + 2
        while time.monotonic() < end_s:
            for _ in range(50):
                admit(shared.rights, HOUR, admitted)
            await asyncio.sleep(0.005)
        assert 300 < sum(admitted.values()) <= 20_000
        running.cancel()
        await shared.close()


def owned_alone(shared: Shared) -> bool:
    shared.rights.share(HOUR)
    report = shared.rights.report(HOUR)
    return report is not None and report.term > 0
