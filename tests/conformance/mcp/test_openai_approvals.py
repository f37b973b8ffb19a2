"""The official client asks for a server's tool, is asked for its approval, gives it, and gets the call and the answer."""

from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI
from openai.types.responses.response_output_item import McpApprovalRequest, McpCall

from support.http.approving_node import approving_node

pytestmark = pytest.mark.conformance

TOOL: Any = {
    "type": "mcp",
    "server_label": "clock",
    "authorization": "s3cret",
    "require_approval": "always",
}


async def test_an_approval_by_the_official_client() -> None:
    async with approving_node() as (running, nodes, _):
        client = AsyncOpenAI(
            base_url=f"http://127.0.0.1:{running.port}/v1", api_key="k", max_retries=0
        )
        async with client:
            async with client.responses.stream(model="m", input="set it", tools=[TOOL]) as stream:
                asked = await stream.get_final_response()
            [request] = asked.output
            assert isinstance(request, McpApprovalRequest)
            answer: Any = {
                "type": "mcp_approval_response",
                "approval_request_id": request.id,
                "approve": True,
            }
            goes_on: dict[str, Any] = {
                "model": "m", "previous_response_id": asked.id, "tools": [TOOL], "input": [answer],
            }  # fmt: skip
            async with client.responses.stream(**goes_on) as stream:
                kinds = [event.type async for event in stream]
                done = await stream.get_final_response()
            call, _message = done.output
            assert isinstance(call, McpCall)
            assert (call.approval_request_id, call.output) == (request.id, "set")
            assert "response.mcp_call.completed" in kinds
            kept = (await client.responses.retrieve(done.id)).output
            assert (kept[0], len(kept)) == (call, 2)
            assert done.output_text == "Done."
            # All of it may be sent back as it is, beside a new question.
            rows: list[Any] = [
                {"role": "user", "content": "set it"},
                *(item.to_dict() for item in asked.output),
                answer,
                *(item.to_dict() for item in done.output),
                {"role": "user", "content": "and now?"},
            ]
            assert (await client.responses.create(model="m", input=rows)).status == "completed"
            with pytest.raises(APIStatusError) as refused:
                await client.responses.create(
                    **{**goes_on, "input": [{**answer, "approve": False}]}
                )
            assert refused.value.code == "approval_already_answered"
        assert nodes.ran == [request.id]
