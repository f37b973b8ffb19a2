"""Relayed requests and embeddings that limits apply to: charged for what their worker says, or what can be seen."""

from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import TextPrompt
from smg_node.engines.http.transport import HttpCall
from support.engines.fake_engine import FakeEngine, abilities
from support.engines.relay_bench import Told, relay_bench, streamed, told, worker
from support.engines.relay_bench import whole as whole_answer
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, limit, whole

USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
ANSWER = {"model": "m", "choices": [{"text": "hi"}], "usage": USAGE}
EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
DONE = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
LAST = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'


def shares_of(world: LimitWorld) -> Sequence[FakeShare]:
    return (
        world.add(limit(), 5),
        world.add(limit("concurrent", window_ms=0), 2),
        world.add(limit("tokens"), 1_000),
    )


async def test_what_the_worker_says_is_what_counts(tmp_path: Path) -> None:
    world = LimitWorld()
    shares = shares_of(world)
    seen = []

    def fine(call: HttpCall) -> Told:
        seen.append([whole(share) for share in shares])
        return told(ANSWER)

    door = door_of(world)
    async with relay_bench(tmp_path, admission=door, w=worker(fine)) as b:
        await b.answer(max_tokens=50)
    # About nine tokens of prompt, by its characters, and all of the answer it asks for.
    prompt = 1_000 - seen[0][2][0] - 50
    assert 5 <= prompt <= 20
    assert seen[0][:2] == [(4, 1), (1, 1)]
    assert [whole(share) for share in shares] == [(4, 1), (2, 0), (987, 13)]
    assert door.tallies.open == 0


async def test_the_usage_of_a_stream_counts_where_it_is_told(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = shares_of(world)[2]
    one = worker(lambda call: streamed(EVENT, EVENT, EVENT, LAST, DONE))
    async with relay_bench(tmp_path, admission=door_of(world), w=one) as b:
        await whole_answer(b.start(stream=True))
    assert whole(tokens) == (995, 5)


async def test_else_its_events_are_taken_for_tokens(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("output_tokens"), 1_000)
    one = worker(lambda call: streamed(*[EVENT] * 300, DONE))
    async with relay_bench(tmp_path, admission=door_of(world), w=one) as b:
        await whole_answer(b.start(stream=True))
    assert whole(tokens) == (1_000 - 302, 302)


async def test_an_answer_without_usage_counts_as_it_was_reserved(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("output_tokens"), 1_000)
    one = worker(lambda call: told({"model": "m", "choices": [{"text": "hi"}]}))
    async with relay_bench(tmp_path, admission=door_of(world), w=one) as b:
        await b.answer(max_tokens=70, n=2)
    assert whole(tokens) == (1_000 - 140, 140)


async def test_who_is_not_let_in_is_not_relayed(tmp_path: Path) -> None:
    world = LimitWorld()
    world.add(limit(), 0, 10)
    one = worker(lambda call: told(ANSWER))
    async with relay_bench(tmp_path, admission=door_of(world), w=one) as b:
        with pytest.raises(LimitedError):
            await b.answer()
        assert b.outcomes[0].status == 429
    assert not one.calls


async def test_nobody_pays_where_no_worker_could_be_asked(tmp_path: Path) -> None:
    world = LimitWorld()
    shares = shares_of(world)
    one = worker(lambda call: told(ANSWER))
    async with relay_bench(tmp_path, admission=door_of(world), w=one) as b:
        with pytest.raises(SmgError):
            await b.answer(target="http://nobody:1")
    assert [whole(share) for share in shares] == [(5, 0), (2, 0), (1_000, 0)]


@pytest.mark.parametrize("status", [400, 503])
async def test_a_request_without_an_answer_costs_no_tokens(tmp_path: Path, status: int) -> None:
    world = LimitWorld()
    shares = shares_of(world)
    error: dict[str, Any] = {"error": {"message": "no", "type": "x", "code": status}}
    one = worker(lambda call: replace(told(error), status=status))
    async with relay_bench(tmp_path, admission=door_of(world), w=one) as b:
        # What the client did wrong is an answer, the rest is none.
        with suppress(SmgError):
            await b.answer()
        assert b.outcomes[0].status in (400, 502, 503)
    assert [whole(share) for share in shares] == [(4, 1), (2, 0), (1_000, 0)]


async def test_a_client_that_leaves_a_stream_pays_for_what_it_got(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("output_tokens"), 1_000)
    one = worker(lambda call: streamed(EVENT, EVENT, 60.0, DONE))
    door = door_of(world)
    async with relay_bench(tmp_path, admission=door, w=one) as b:
        heard = 0
        async with aclosing(b.start(stream=True).answer()) as pieces:
            async for _ in pieces:
                heard += 1
                if heard == 3:
                    break
    assert whole(tokens) == (998, 2)
    assert door.tallies.open == 0


async def test_other_apis_cost_their_prompt(tmp_path: Path) -> None:
    world = LimitWorld()
    shares = shares_of(world)
    one = worker(lambda call: told({"results": []}))
    async with relay_bench(tmp_path, admission=door_of(world), w=one) as b:
        await b.answer("rerank", query="q" * 40, documents=["d" * 60])
    assert [whole(share) for share in shares] == [(4, 1), (2, 0), (975, 25)]


# ── Embeddings made by engines ───────────────────────────────────────────────


def embedding_engine() -> FakeEngine:
    engine = FakeEngine()
    engine.abilities = replace(abilities(), embeds=True)
    return engine


def inputs(*texts: str) -> list[TextPrompt]:
    return [TextPrompt(text, add_special_tokens=False) for text in texts]


async def test_embeddings_cost_their_inputs(tmp_path: Path) -> None:
    world = LimitWorld()
    shares = shares_of(world)
    door = door_of(world)
    async with relay_bench(tmp_path, admission=door, engines={"e": embedding_engine()}) as b:
        run = b.embedder.start("tiny", inputs("a", "bcd", "ef"), b.context())
        await run.vectors()
        assert run.ticket is not None
        assert run.ticket.headers("openai")["x-ratelimit-remaining-tokens"] == "994"
    assert [whole(share) for share in shares] == [(4, 1), (2, 0), (994, 6)]
    assert door.tallies.open == 0


async def test_embeddings_that_are_not_let_in_cost_nothing(tmp_path: Path) -> None:
    world = LimitWorld()
    requests = world.add(limit(), 5)
    tokens = world.add(limit("tokens"), 3, 100)
    engine = embedding_engine()
    async with relay_bench(tmp_path, admission=door_of(world), engines={"e": engine}) as b:
        with pytest.raises(LimitedError):
            await b.embedder.start("tiny", inputs("abcd"), b.context()).vectors()
        with pytest.raises(SmgError, match="empty"):
            await b.embedder.start("tiny", inputs(""), b.context()).vectors()
    assert (whole(requests), whole(tokens)) == ((5, 0), (3, 0))
    assert not engine.embedded


async def test_embeddings_that_fail_cost_their_request_only(tmp_path: Path) -> None:
    world = LimitWorld()
    shares = shares_of(world)
    engine = embedding_engine()
    engine.embed_error = SmgError(ErrorKind.INVALID_REQUEST, "no")
    async with relay_bench(tmp_path, admission=door_of(world), engines={"e": engine}) as b:
        with pytest.raises(SmgError):
            await b.embedder.start("tiny", inputs("abcd"), b.context()).vectors()
    assert [whole(share) for share in shares] == [(4, 1), (2, 0), (1_000, 0)]
