import asyncio
import json
from collections.abc import AsyncIterator, Sequence

from smg_node.core.generation.events import Event
from support.history.history_world import begin, block, calling, finish
from support.http.history_routes import PATH, Here, carried, events_of, get, post
from support.http.http_node import FakeRun, node
from support.http.raw_http import connect


async def test_what_was_never_logged_is_told_again_but_not_from_a_number_on() -> None:
    async with node(calling, history=Here()) as served:
        made = (await post(served, input="Weather?")).json()
        events = events_of(await get(served, f"{PATH}/{made['id']}?stream=true"))
        assert events[-1]["response"] == made
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        late = await get(served, f"{PATH}/{made['id']}?stream=true&starting_after=0")
        assert (late.status, late.error()["code"]) == (400, "stream_expired")


async def test_a_foreground_stream_of_another_client_is_not_to_be_had_while_it_is_made() -> None:
    async def stuck(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [begin(), *block(0, "text", "so far")]
        await asyncio.Event().wait()

    async with node(stuck, history=Here()) as served, connect(served.port) as client:
        body = {"model": "m", "input": "hi", "stream": True}
        await client.send("POST", PATH, json.dumps(body).encode())
        await client.head()
        text = (await client.chunk()).decode()
        first = json.loads(text.partition("data: ")[2].partition("\n")[0])
        early = await get(served, f"{PATH}/{first['response']['id']}?stream=true")
        assert (early.status, early.error()["code"]) == (400, "stream_not_resumable")


async def test_a_background_response_is_queued_then_shown_followed_and_continued() -> None:
    go = asyncio.Event()

    async def waiting(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [begin(), *block(0, "reasoning", "hm")]
        await go.wait()
        yield [*block(1, "text", "done"), *finish()]

    here = Here()
    async with node(waiting, history=here) as served, carried(served, here):
        made = await post(served, input="hi", background=True)
        assert made.status == 200
        body = made.json()
        assert (body["status"], body["background"], body["output"]) == ("queued", True, [])
        path = f"{PATH}/{body['id']}"
        async with connect(served.port) as client:
            await client.send("GET", f"{path}?stream=true")
            await client.head()
            assert b"response.created" in await client.chunk()
            client.vanish()
        go.set()
        events = events_of(await get(served, f"{path}?stream=true"))
        assert [event["type"] for event in events[:3]] == [
            "response.created",
            "response.queued",
            "response.in_progress",
        ]
        final = (await get(served, path)).json()
        assert events[-1]["response"] == final
        assert final["status"] == "completed"
        for after in range(len(events) + 2):
            rest = events_of(await get(served, f"{path}?stream=true&starting_after={after}"))
            assert rest == events[after + 1 :]


async def test_a_background_stream_is_the_same_for_its_client_and_for_who_comes_later() -> None:
    here = Here()
    async with node(calling, history=here) as served, carried(served, here):
        streamed = await post(served, input="Weather?", background=True, stream=True)
        events = events_of(streamed)
        assert events[-1]["type"] == "response.completed"
        path = f"{PATH}/{events[0]['response']['id']}"
        again = await get(served, f"{path}?stream=true")
        assert again.body == streamed.body
        await asyncio.gather(*[get(served, f"{path}?stream=true") for _ in range(3)])
