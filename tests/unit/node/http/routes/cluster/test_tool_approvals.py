"""Runs that wait for an operator's word, by HTTP: listed, shown, answered once, and written down without arguments."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smg_node.cluster.approvals.approval_service import ClusterApprovals
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.tool_approvals import WaitingRun
from support.http.http_node import Node, node
from support.http.raw_http import Response, ask
from support.mcp.waiting_nodes import WaitingProcess

APPROVALS = "/v1/mcp/approvals"
SECRET = "4711-very-private"
ARGUMENTS = json.dumps({"id": SECRET})


@asynccontextmanager
async def world() -> AsyncIterator[tuple[Node, WaitingProcess]]:
    """A node on which runs may wait."""
    async with node() as served:
        process = WaitingProcess("node-a")
        process.connect()
        served.parts.tool_approvals = process.approvals.service
        yield served, process


async def send(served: Node, method: str, path: str, body: Any = None) -> Response:
    return await ask(served.port, method, APPROVALS + path, body)


async def test_what_waits_is_listed_shown_and_allowed_once() -> None:
    async with world() as (served, process), process.run("drop", ARGUMENTS) as task:
        listed = (await send(served, "GET", "")).json()
        [run] = listed["approvals"]
        shown = (await send(served, "GET", f"/{run['id']}")).json()
        done = await send(served, "POST", f"/{run['id']}", {"approve": True, "reason": "known"})
        again = await send(served, "POST", f"/{run['id']}", {"approve": False})
        answer = await task
        gone = await send(served, "GET", f"/{run['id']}")
        [row] = served.world.rows
    assert (listed["node"], listed["left_out"]) == ("node-a", 0)
    assert run["arguments"] == ARGUMENTS
    assert shown == {"node": "node-a", "approval": run}
    assert done.json() == {
        "status": "answered",
        "id": run["id"],
        "approve": True,
        "node": "node-a",
        "server": "crm",
        "tool": "drop",
    }
    assert answer.approve
    for late in (again, gone):
        assert (late.status, late.json()["error"]["code"]) == (409, "approval_already_answered")
    assert (row.action, row.subject) == ("mcp.approval", "crm/drop")
    assert row.after == {
        "id": run["id"],
        "approve": True,
        "reason": "known",
        "tenant": "acme",
        "key_id": "k-1",
        "waited_on": "node-a",
        "request_id": "r-1",
    }
    assert SECRET not in str(row)


async def test_a_model_is_told_why_not() -> None:
    async with world() as (served, process), process.run() as task:
        [run] = (await send(served, "GET", "")).json()["approvals"]
        await send(served, "POST", f"/{run['id']}", {"approve": False, "reason": "ask first"})
        assert (await task).why == "an operator did not allow it: ask first"


async def test_what_nobody_knows_is_not_found_and_not_written_down() -> None:
    async with world() as (served, process), process.run():
        for method, body in (("GET", None), ("POST", {"approve": True})):
            answer = await send(served, method, "/mcpa_1", body)
            assert (answer.status, answer.json()["error"]["code"]) == (404, "approval_not_found")
        assert served.world.rows == []


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "approve"),
        ({"approve": "yes"}, "approve"),
        ({"approve": True, "reason": "x" * 501}, "reason"),
        ({"approve": True, "reason": 1}, "reason"),
        ({"approve": True, "arguments": {}}, "arguments"),
    ],
)
async def test_an_answer_says_yes_or_no(body: Any, where: str) -> None:
    async with world() as (served, process), process.run() as task:
        [run] = (await send(served, "GET", "")).json()["approvals"]
        answer = await send(served, "POST", f"/{run['id']}", body)
        assert not task.done()
    assert (answer.status, answer.json()["error"]["param"]) == (400, where)


async def test_an_answer_that_may_have_been_heard_is_written_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lost(self: ClusterApprovals, run: WaitingRun, *, approve: bool, reason: str) -> None:
        raise SmgError(ErrorKind.UPSTREAM_TIMEOUT, "b: no answer in time", code="member_silent")

    monkeypatch.setattr(ClusterApprovals, "answer", lost)
    async with world() as (served, process), process.run():
        [run] = (await send(served, "GET", "")).json()["approvals"]
        answer = await send(served, "POST", f"/{run['id']}", {"approve": True})
        [row] = served.world.rows
    assert answer.status == 504
    assert row.after["in_doubt"] == "b: no answer in time"


async def test_tenants_and_keys_that_only_look_see_none_of_it() -> None:
    async with world() as (served, process), process.run():
        made: dict[str, str] = {}
        for role, wish in (
            ("admin", {"role": "admin"}),
            ("operator", {"role": "operator", "name": "dashboards"}),
            ("data", {"tenant": "acme", "name": "x"}),
        ):
            key = made.get("admin", "")
            headers = {"authorization": f"Bearer {key}"} if key else {}
            answer = await ask(served.port, "POST", "/v1/cluster/keys", wish, headers)
            made[role] = answer.json()["key"]
        said = {
            role: (
                await ask(served.port, "GET", APPROVALS, headers={"authorization": f"Bearer {key}"})
            ).status
            for role, key in made.items()
        }
    assert said == {"admin": 200, "operator": 403, "data": 403}
