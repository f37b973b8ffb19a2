import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from smg_node.core.generation.events import Event
from smg_node.history.ports import HistoryOptions
from smg_storage.errors import StoreErrorKind
from smg_storage.records import Access
from support.history.history_world import (
    begin,
    block,
    calling,
    counting,
    failing,
    failing_late,
    question,
)
from support.http.history_routes import PATH, Here, events_of, get, post
from support.http.http_node import FakeRun, node
from support.http.raw_http import Response, ask, connect, until


async def test_a_response_is_answered_shown_continued_and_deleted() -> None:
    async with node(counting, history=Here()) as served:
        made = await post(served, input="hi", metadata={"a": "b"})
        assert made.status == 200
        body = made.json()
        assert body["output"][0]["content"][0]["text"] == "turns 1"
        assert made.headers["x-smg-history"] == "items=1/1; tokens=3"
        assert made.headers["x-smg-routed-worker-id"] == "w-1"
        assert made.headers["openai-version"]
        shown = await get(served, f"{PATH}/{body['id']}")
        assert shown.body == made.body
        second = await post(served, input="more", previous_response_id=body["id"])
        assert second.json()["output"][0]["content"][0]["text"] == "turns 3"
        listed = (await get(served, f"{PATH}/{second.json()['id']}/input_items")).json()
        assert [item["content"][0]["text"] for item in listed["data"]] == ["more"]
        assert listed["first_id"] == listed["last_id"] == listed["data"][0]["id"]
        gone = await ask(served.port, "DELETE", f"{PATH}/{body['id']}")
        assert gone.json() == {"id": body["id"], "object": "response", "deleted": True}
        assert (await get(served, f"{PATH}/{body['id']}")).status == 404
        again = await ask(served.port, "DELETE", f"{PATH}/{body['id']}")
        assert again.status == 404


async def test_a_stream_is_numbered_named_and_ends_with_what_was_kept() -> None:
    async with node(calling, history=Here()) as served:
        response = await post(served, input="Weather?", stream=True)
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-smg-history"] == "items=1/1; tokens=3"
        events = events_of(response)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[-1]["type"] == "response.completed"
        kept = await get(served, f"{PATH}/{events[0]['response']['id']}")
        assert kept.json() == events[-1]["response"]


async def test_what_fails_before_the_first_byte_has_its_own_status() -> None:
    for stream in (False, True):
        async with node(failing, history=Here()) as served:
            response = await post(served, input="hi", stream=stream)
        assert response.status == 502
        assert response.error()["message"] == "the engine died"


async def test_what_fails_later_is_the_last_event_of_the_stream() -> None:
    async with node(failing_late, history=Here()) as served:
        events = events_of(await post(served, input="hi", stream=True))
        assert events[-1]["type"] == "response.failed"
        assert events[-1]["response"]["error"]["code"] == "server_error"
        assert (await post(served, input="hi")).status == 502


async def test_what_fails_after_comments_is_told_in_the_stream() -> None:
    async def late(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await asyncio.sleep(0.1)
        async for batch in failing(run):
            yield batch

    async with node(late, history=Here(), commit_after_s=0.02, keepalive_s=0.02) as served:
        response = await post(served, input="hi", stream=True)
    assert response.status == 200
    events = events_of(response)
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.failed",
    ]


async def test_what_cannot_be_kept_is_an_error_and_never_complete() -> None:
    here = Here()
    async with node(counting, history=here) as served:
        assert (await post(served, input="warm up")).status == 200
        here.world.keeper.refusal = StoreErrorKind.UNAVAILABLE
        plain = await post(served, input="hi")
        assert plain.status == 503
        assert plain.error()["code"] == "store_unavailable"
        assert plain.headers["retry-after"] == "2"
        events = events_of(await post(served, input="hi", stream=True))
        assert events[-1]["type"] == "response.failed"
        here.world.keeper.refusal = None
        here.world.keeper.spools = True
        assert (await post(served, input="hi")).headers["x-smg-store"] == "spooled"


async def test_a_lost_client_ends_the_generation_and_what_was_said_is_kept() -> None:
    async def stuck(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [begin(), *block(0, "text", "so far")]
        await asyncio.Event().wait()

    here = Here()
    async with node(stuck, history=here) as served, connect(served.port) as client:
        body = {"model": "m", "input": "hi", "stream": True}
        await client.send("POST", PATH, json.dumps(body).encode())
        await client.head()
        await client.chunk()
        client.vanish()
        await until(lambda: here.world.keeper.turns)
        [turn] = here.world.keeper.turns
        assert turn.response.status.value == "cancelled"
        await until(lambda: served.generations.runs[0].closed.is_set())


async def test_a_node_that_shuts_down_says_so_as_the_last_event() -> None:
    async def stuck(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [begin(), *block(0, "text", "so far")]
        await asyncio.Event().wait()

    here = Here()
    async with node(stuck, history=here) as served, connect(served.port) as client:
        body = {"model": "m", "input": "hi", "stream": True}
        await client.send("POST", PATH, json.dumps(body).encode())
        await client.head()
        text = await client.chunk()
        served.server._app.inflight.cut()
        while part := await client.chunk():
            text += part
        assert b"event: response.failed" in text
        assert text.endswith(b"data: [DONE]\n\n")
        [turn] = here.world.keeper.turns
        assert turn.response.status.value == "failed"


@pytest.mark.parametrize(
    ("body", "status", "code", "where"),
    [
        ({}, 400, "missing_required_parameter", "input"),
        ({"input": "a", "previous_response_id": "resp_1", "conversation": "conv_1"}, 400, "invalid_value", "conversation"),
        ({"input": "a", "background": True, "store": False}, 400, "invalid_value", "background"),
        ({"input": "a", "previous_response_id": "resp_1"}, 400, "previous_response_not_found", "previous_response_id"),
        ({"input": "a", "conversation": {"id": "conv_1"}}, 404, "conversation_not_found", "conversation"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, 400, "item_not_found", "input[0].id"),
        ({"input": [{"type": "nonsense"}]}, 400, "unsupported_item_type", "input[0].type"),
        ({"input": "a", "metadata": {"k": 1}}, 400, "invalid_type", "metadata.k"),
        ({"input": "a", "prompt": {"id": "p"}}, 400, "unsupported_parameter", "prompt"),
    ],
)  # fmt: skip
async def test_every_refusal_has_its_status_code_and_place(
    body: dict[str, Any], status: int, code: str, where: str
) -> None:
    async with node(counting, history=Here()) as served:
        response = await post(served, **body)
        assert not served.generations.runs
    error = response.error()
    assert (response.status, error["code"], error["param"]) == (status, code, where)


async def test_what_is_not_there_is_not_found_under_every_route() -> None:
    async with node(counting, history=Here()) as served:
        for method, path in (
            ("GET", f"{PATH}/resp_1"),
            ("DELETE", f"{PATH}/resp_1"),
            ("POST", f"{PATH}/resp_1/cancel"),
            ("GET", f"{PATH}/resp_1/input_items"),
        ):
            response = await ask(served.port, method, path)
            assert (response.status, response.error()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("query", "where"),
    [("limit=0", "limit"), ("limit=101", "limit"), ("order=up", "order"), ("after=%00", "after")],
)
async def test_a_page_that_cannot_be_is_refused(query: str, where: str) -> None:
    async with node(counting, history=Here()) as served:
        made = (await post(served, input="hi")).json()["id"]
        response = await get(served, f"{PATH}/{made}/input_items?{query}")
    assert (response.status, response.error()["param"]) == (400, where)


async def test_what_is_included_is_checked() -> None:
    async with node(counting, history=Here()) as served:
        made = (await post(served, input="hi")).json()["id"]
        good = "include[]=reasoning.encrypted_content&include=message.output_text.logprobs"
        assert (await get(served, f"{PATH}/{made}?{good}")).status == 200
        assert (await get(served, f"{PATH}/{made}?include=everything")).status == 400
        assert (await get(served, f"{PATH}/{made}?include=everything&stream=true")).status == 400
        assert (await get(served, f"{PATH}/{made}?stream=false")).status == 200


async def test_a_response_of_the_foreground_is_not_cancelled() -> None:
    async with node(counting, history=Here()) as served:
        made = (await post(served, input="hi")).json()["id"]
        response = await ask(served.port, "POST", f"{PATH}/{made}/cancel")
    assert (response.status, response.error()["code"]) == (400, "cannot_cancel")


async def test_tokens_are_counted_and_a_history_is_compacted() -> None:
    async with node(counting, history=Here()) as served:
        made = (await post(served, input="one two")).json()["id"]
        counted = await post(served, f"{PATH}/input_tokens", input="x", previous_response_id=made)
        assert counted.json() == {"object": "response.input_tokens", "input_tokens": 8}
        short = await post(served, f"{PATH}/compact", previous_response_id=made, input="x")
        body = short.json()
        assert body["object"] == "response.compaction"
        assert body["output"][-1]["type"] == "compaction"
        assert short.headers["x-smg-routed-worker-id"] == "w-1"
        without = await ask(served.port, "POST", f"{PATH}/compact", {"input": "x"})
        assert (without.status, without.error()["param"]) == (400, "model")
        carried = await post(served, input=[*body["output"], question("go on")])
        assert carried.status == 200


async def test_conversations_are_made_changed_listed_and_deleted() -> None:
    async with node(counting, history=Here()) as served:
        base = "/v1/conversations"
        made = await ask(
            served.port, "POST", base, {"items": [question("a")], "metadata": {"k": "v"}}
        )
        card = made.json()
        assert (card["object"], card["metadata"]) == ("conversation", {"k": "v"})
        here = f"{base}/{card['id']}"
        assert (await get(served, here)).body == made.body
        changed = await ask(served.port, "POST", here, {"metadata": None})
        assert changed.json()["metadata"] == {}
        added = await ask(served.port, "POST", f"{here}/items", {"items": [question("b")]})
        [item] = added.json()["data"]
        assert added.json()["has_more"] is False
        listed = (await get(served, f"{here}/items?order=asc")).json()
        assert [row["content"][0]["text"] for row in listed["data"]] == ["a", "b"]
        assert (await get(served, f"{here}/items/{item['id']}")).json() == item
        left = await ask(served.port, "DELETE", f"{here}/items/{item['id']}")
        assert left.json() == changed.json()
        assert (await get(served, f"{here}/items/{item['id']}")).status == 404
        gone = await ask(served.port, "DELETE", here)
        assert gone.json()["object"] == "conversation.deleted"
        for path in (here, f"{here}/items", f"{here}/items/{item['id']}"):
            response = await get(served, path)
            assert (response.status, response.error()["code"]) == (404, "conversation_not_found")


async def test_bodies_of_conversations_are_checked() -> None:
    async with node(counting, history=Here()) as served:
        base = "/v1/conversations"
        assert (await ask(served.port, "POST", base)).status == 200
        many = {"items": [question("a")] * 21}
        assert (await ask(served.port, "POST", base, many)).status == 400
        here = f"{base}/{(await ask(served.port, 'POST', base, {})).json()['id']}"
        assert (await ask(served.port, "POST", here, {})).error()["param"] == "metadata"
        assert (await ask(served.port, "POST", f"{here}/items", {"items": []})).status == 400
        broken: Response = await ask(served.port, "POST", base, b"{")
        assert broken.status == 400


async def test_hooks_of_the_store_are_told_who_asks_and_the_headers_they_were_promised() -> None:
    here = Here(HistoryOptions(context_headers=("x-team", "x-absent"), store_timeout_s=1.5))
    async with node(counting, history=here) as served:
        body = {"model": "m", "input": "hi"}
        headers = {"X-Team": "blue" * 400, "x-request-id": "req-7"}
        await ask(served.port, "POST", PATH, body, headers)
    [access] = here.world.keeper.accesses
    assert access == Access("-", 1.5, "", "req-7", {"x-team": "blue" * 256})


async def test_histories_of_tenants_are_apart() -> None:
    async with node(counting, history=Here()) as served:

        async def key(credential: str = "", **body: Any) -> str:
            headers = {"authorization": f"Bearer {credential}"} if credential else {}
            made = await ask(served.port, "POST", "/v1/cluster/keys", body, headers)
            return str(made.json()["key"])

        admin = await key(tenant="ops", role="admin")
        acme, other = await key(admin, tenant="acme"), await key(admin, tenant="other")

        async def as_tenant(credential: str, method: str, path: str, body: Any = b"") -> Response:
            return await ask(
                served.port, method, path, body, {"authorization": f"Bearer {credential}"}
            )

        made = (await as_tenant(acme, "POST", PATH, {"model": "m", "input": "hi"})).json()["id"]
        assert (await as_tenant(acme, "GET", f"{PATH}/{made}")).status == 200
        for method, path in (
            ("GET", f"{PATH}/{made}"),
            ("GET", f"{PATH}/{made}/input_items"),
            ("POST", f"{PATH}/{made}/cancel"),
            ("DELETE", f"{PATH}/{made}"),
        ):
            assert (await as_tenant(other, method, path)).status == 404
        body = {"model": "m", "input": "hi", "previous_response_id": made}
        response = await as_tenant(other, "POST", PATH, body)
        assert response.error()["code"] == "previous_response_not_found"
        assert (await as_tenant(acme, "POST", PATH, body)).status == 200
        assert (await post(served, input="hi")).status == 401


@pytest.mark.parametrize("query", ["", "?include[]=message.input_image.image_url"])
async def test_images_are_read_back_as_they_were_sent_whatever_is_included(query: str) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}
    item = {"role": "user", "content": [image], "type": "message"}
    async with node(counting, history=Here()) as served:
        made = (await post(served, input=[item])).json()
        listed = await get(served, f"{PATH}/{made['id']}/input_items{query}")
        assert listed.json()["data"][0]["content"] == [image]
        conversation = (await post(served, "/v1/conversations", items=[item])).json()["id"]
        kept = await get(served, f"/v1/conversations/{conversation}/items{query}")
        assert kept.json()["data"][0]["content"] == [image]
        # What was read back can be sent again.
        again = await post(served, input=kept.json()["data"])
        assert again.status == 200
