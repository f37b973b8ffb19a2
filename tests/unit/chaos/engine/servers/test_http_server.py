"""The simulated engine's HTTP server: as odd as real ones where it matters."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from smg_chaos.engine.plan_builder import make_plan
from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.scripts.scripts import TEXTS
from smg_chaos.engine.servers.http_server import HttpFace
from smg_chaos.engine.simulator.engine import Engine
from smg_node.system_clock import SystemClock

CLOCK = SystemClock()
SAYS = TEXTS["fixed"]


@asynccontextmanager
async def face(
    *faults: str, api_key: str = "", script: str = "fixed", **settings: Any
) -> AsyncIterator[tuple[ClientSession, HttpFace]]:
    said = {"model": "m", "contract": "openai", "step_s": 0.001, **settings}
    plan = make_plan(Wanted(settings=said, script=script, faults=faults, api_key=api_key))
    assert plan.server == "openai"
    engine = Engine(plan.settings, plan.bundle, plan.script, plan.faults, now_s=CLOCK.monotonic_s())
    one = HttpFace(engine, CLOCK, api_key=plan.api_key)
    port = await one.listen("127.0.0.1", 0)
    try:
        async with ClientSession(f"http://127.0.0.1:{port}") as session:
            yield session, one
        engine.check()
    finally:
        await one.close()


def chat(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "Hello?"}], **more}


async def test_both_forms_of_an_answer_say_the_same() -> None:
    async with face() as (session, _):
        whole = await (await session.post("/v1/chat/completions", json=chat(n=2))).json()
        assert [one["message"]["content"] for one in whole["choices"]] == [SAYS, SAYS]
        body = chat(stream=True, stream_options={"include_usage": True})
        text = await (await session.post("/v1/chat/completions", json=body)).text()
        events = [line[6:] for line in text.split("\n\n") if line]
        assert events[-1] == "[DONE]"
        chunks = [json.loads(event) for event in events[:-1]]
        assert chunks[-1]["usage"]["completion_tokens"] * 2 == whole["usage"]["completion_tokens"]
        said = [one["delta"]["content"] for chunk in chunks for one in chunk["choices"]]
        assert "".join(said) == SAYS
        assert chunks[-2]["choices"][0]["finish_reason"] == "stop"


async def test_pages_say_what_it_is() -> None:
    async with face() as (session, one):
        assert (await session.get("/health")).status == 200
        [model] = (await (await session.get("/v1/models")).json())["data"]
        assert (model["id"], model["max_model_len"]) == ("m", one.engine.settings.context)
        assert "vllm:num_requests_running" in await (await session.get("/metrics")).text()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "other", "prompt": "x"}, 404),
        ({"model": "m", "prompt": "x", "n": 0}, 400),
        ({"model": "m", "prompt": "x", "max_tokens": 0}, 400),
        ([], 400),
    ],
)
async def test_mistakes_have_a_status(body: Any, status: int) -> None:
    async with face() as (session, _):
        answer = await session.post("/v1/completions", json=body)
        assert answer.status == status
        assert (await answer.json())["error"]["message"]


async def test_the_door_wants_its_key() -> None:
    async with face(api_key="k") as (session, _):
        assert (await session.get("/v1/models")).status == 401
        headers = {"authorization": "Bearer k"}
        assert (await session.get("/v1/models", headers=headers)).status == 200


async def test_a_fault_before_the_first_word_is_a_status_and_a_later_one_cuts() -> None:
    async with face("refuse:status=RESOURCE_EXHAUSTED") as (session, _):
        answer = await session.post("/v1/chat/completions", json=chat())
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    async with face("error:after=2") as (session, _):
        answer = await session.post("/v1/chat/completions", json=chat(stream=True))
        assert answer.status == 200
        with pytest.raises(ClientError):
            await answer.read()


async def test_a_client_that_leaves_frees_its_slot() -> None:
    async with face(script="endless", context=100_000, blocks=4_000) as (session, one):
        answer = await session.post("/v1/chat/completions", json=chat(stream=True))
        await answer.content.readany()
        assert one.engine.active == 1
        answer.close()
        async with asyncio.timeout(5):
            while one.engine.active:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)


async def test_other_answers_are_the_same_for_the_same_words() -> None:
    async with face() as (session, _):
        body = {"model": "m", "input": ["a", "b", "a"]}
        rows = (await (await session.post("/v1/embeddings", json=body)).json())["data"]
        assert rows[0]["embedding"] == rows[2]["embedding"] != rows[1]["embedding"]
        body = {"model": "m", "query": "a", "documents": ["b", "a"]}
        told = await (await session.post("/v1/rerank", json=body)).json()
        assert [row["index"] for row in told["results"]] == [1, 0]
        body = {"model": "m", "input": "short"}
        told = await (await session.post("/v1/classify", json=body)).json()
        assert told["data"][0]["label"] == "short"


def test_the_contract_is_served_by_no_other_server() -> None:
    with pytest.raises(ValueError, match="does not speak"):
        make_plan(Wanted(settings={"model": "m", "contract": "openai"}, server="h2"))
    with pytest.raises(ValueError, match="tell-calls"):
        make_plan(Wanted(settings={"model": "m", "contract": "openai"}, tell_calls=True))
