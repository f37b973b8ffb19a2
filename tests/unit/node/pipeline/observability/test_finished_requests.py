"""What requests of every kind say of themselves when they are over: whose they were, and what they used."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.core.errors import SmgError
from smg_node.core.generation.request import TextPrompt
from smg_node.core.prices.price_list import PriceList
from smg_node.pipeline.relay.relay_run import RelayRun
from support.engines.fake_engine import FakeEngine, abilities, says
from support.engines.generation_bench import Bench, bench_of
from support.engines.relay_bench import RelayBench, relay_bench, streamed, told, whole, worker
from support.http.request_usage import Wall
from support.rights.fake_rights import LimitWorld, door_of, limit

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
DONE = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def acmes(run: Any) -> Any:
    """Let a run be a request of tenant acme."""
    name = "context" if hasattr(run, "context") else "_context"
    setattr(run, name, structs.replace(getattr(run, name), tenant="acme", key_id="k1"))
    return run


def used(b: RelayBench | Bench) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Requests, refused, tokens of prompts, of their cached parts, and of answers, by whose they are."""
    book = UsageBook(PriceList(), now_ms=Wall().now_ms, life="a")
    for outcome in b.outcomes:
        book.record(outcome)
    return {
        line.who[:3]: (line.requests, line.refused, line.prompt, line.cached, line.answer)
        for line in book.lines()
    }


async def test_a_generation_is_its_tenants(tmp_path: Path) -> None:
    async with bench_of(tmp_path, {"a": FakeEngine(says("abc"))}) as b:
        async for _ in acmes(b.start()).events():
            pass
        await b.answer()
        found = used(b)
    (model,) = {who[2] for who in found}
    assert found["acme", "k1", model] == found["", "", model] == (1, 0, 2, 2, 4)


async def test_a_refused_generation_is_refused_and_costs_nothing(tmp_path: Path) -> None:
    world = LimitWorld()
    world.add(limit(), 0, 10)
    async with bench_of(tmp_path, {"a": FakeEngine(says("abc"))}, admission=door_of(world)) as b:
        async for _ in acmes(b.start()).events():
            pass
        ((who, counts),) = used(b).items()
    assert who[:2] == ("acme", "k1")
    assert counts == (0, 1, 0, 0, 0)


async def test_embeddings_are_their_tenants(tmp_path: Path) -> None:
    one = FakeEngine()
    one.abilities = replace(abilities(), embeds=True)
    async with relay_bench(tmp_path, engines={"e": one}) as b:
        prompts = [TextPrompt(text, add_special_tokens=False) for text in ("a", "bcd")]
        await acmes(b.embedder.start("tiny", prompts, b.context())).vectors()
        assert used(b) == {("acme", "k1", "tiny"): (1, 0, 4, 0, 0)}


async def test_what_a_worker_says_of_a_relayed_request_is_what_it_used(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    one = worker(lambda call: told({"model": "m", "choices": [{"text": "hi"}], "usage": usage}))
    async with relay_bench(tmp_path, w=one) as b:
        await whole(acmes(b.start()))
        assert used(b) == {("acme", "k1", "m"): (1, 0, 9, 0, 4)}


async def test_a_stream_without_usage_is_estimated_by_its_events(tmp_path: Path) -> None:
    one = worker(lambda call: streamed(*[EVENT] * 30, DONE))
    async with relay_bench(tmp_path, w=one) as b:
        run: RelayRun = acmes(b.start(stream=True))
        await whole(run)
        guess = run._asked.prompt_tokens
        assert guess > 0
        assert used(b) == {("acme", "k1", "m"): (1, 0, guess, 0, 32)}


async def test_documents_that_are_put_in_order_count_by_their_length(tmp_path: Path) -> None:
    one = worker(lambda call: told({"results": []}))
    async with relay_bench(tmp_path, w=one) as b:
        run: RelayRun = acmes(b.start("rerank", query="which?", documents=["this one", "that one"]))
        await whole(run)
        assert used(b) == {("acme", "k1", "m"): (1, 0, run._asked.prompt_tokens, 0, 0)}


@pytest.mark.parametrize(("status", "counts"), [(400, (0, 1)), (500, (1, 0)), (503, (1, 0))])
async def test_what_a_worker_does_not_do_costs_nothing(
    tmp_path: Path, status: int, counts: tuple[int, int]
) -> None:
    error = json.dumps({"error": {"message": "no"}})
    one = worker(lambda call: told(json.loads(error), status))
    async with relay_bench(tmp_path, w=one) as b:
        with pytest.raises(SmgError):
            await whole(acmes(b.start()))
        assert used(b) == {("acme", "k1", "m"): (*counts, 0, 0, 0)}
