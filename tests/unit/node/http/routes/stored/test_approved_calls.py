"""Responses with tools of ours over HTTP: asked at first, run when approved, and shown again to who approves twice."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from support.answers.responses import checked
from support.history.approving_nodes import CLOCK, answer_to
from support.http.approving_node import approving_node
from support.http.history_routes import PATH, events_of, get, post
from support.http.http_node import Node
from support.http.raw_http import Response

SECRET = "s3cret-of-the-client"
TOOL: dict[str, Any] = {**CLOCK, "authorization": SECRET, "headers": {"x-own": SECRET}}


async def asked(running: Node, **more: Any) -> tuple[str, dict[str, Any]]:
    made = (await post(running, input="set it", tools=[TOOL], **more)).json()
    [item] = made["output"]
    assert item["type"] == "mcp_approval_request"
    return made["id"], item


async def answer(running: Node, first: str, approval: str, **more: Any) -> Response:
    return await post(
        running,
        **{"input": answer_to(approval), "previous_response_id": first, "tools": [TOOL], **more},
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_an_approved_call_is_run_once_and_shown_again(stream: bool) -> None:
    async with approving_node() as (running, nodes, _):
        first, item = await asked(running)
        one = await answer(running, first, item["id"], stream=stream)
        two = await answer(running, first, item["id"], stream=stream)
        assert (one.status, two.status) == (200, 200)
        assert two.headers["idempotent-replayed"] == "true"
        assert "idempotent-replayed" not in one.headers
        if stream:
            first_told, second_told = (_told(answered) for answered in (one, two))
            assert checked(first_told) == checked(second_told)
            body = json.loads(first_told[-1].data)["response"]
        else:
            assert one.body == two.body
            body = one.json()
        kinds = [row["type"] for row in body["output"]]
        assert kinds == ["mcp_call", "message"]
        assert (await get(running, f"{PATH}/{body['id']}")).json() == body
        assert nodes.ran == [item["id"]]


def _told(response: Response) -> list[NumberedEvent]:
    rows = events_of(response)
    return [
        NumberedEvent(row["sequence_number"], row["type"], json.dumps(row).encode()) for row in rows
    ]


async def test_another_answer_is_a_conflict_and_an_unknown_one_a_mistake() -> None:
    async with approving_node() as (running, nodes, _):
        first, item = await asked(running)
        await answer(running, first, item["id"])
        other = await answer(running, first, item["id"], input=answer_to(item["id"], approve=False))
        assert (other.status, other.json()["error"]["code"]) == (409, "approval_already_answered")
        unknown = await answer(running, first, "mcpr_nobody")
        error = unknown.json()["error"]
        assert (unknown.status, error["code"], error["param"]) == (
            400, "approval_not_found", "input[0].approval_request_id",
        )  # fmt: skip
        assert len(nodes.ran) == 1


async def test_secrets_are_told_to_the_loop_and_stay_out_of_everything_else() -> None:
    async with approving_node() as (running, _, here):
        first, item = await asked(running)
        second = (await answer(running, first, item["id"])).json()
        for response_id in (first, second["id"]):
            shown = await get(running, f"{PATH}/{response_id}")
            listed = await get(running, f"{PATH}/{response_id}/input_items")
            assert SECRET.encode() not in shown.body + listed.body
        assert all(SECRET not in repr(turn) for turn in here.world.keeper.turns)
        serving = running.generations.runs[-1].request.serving
        assert serving is not None
        assert serving.servers[0].authorization == SECRET
        assert "authorization" not in serving.headers
        assert SECRET not in repr(replace(serving, headers={}))
        assert SECRET not in repr(running.generations.runs[-1].request)
