"""Plain text that goes past events: the client gets the same bytes, whatever comes, wherever it is cut, breaks or waits."""

import dataclasses
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from smg_node.core.request_context import RequestContext
from smg_node.engines.engine import EngineRequest
from smg_node.system_clock import SystemClock
from support.engines.generation_bench import HI, Bench, bench_of
from support.engines.message_engine import Batches, Client, MessageEngine, chunk, end, reading_of
from support.rights.fake_rights import LimitWorld, door_of, limit, whole

WORDS = ["plain words, ", '"quoted\\" ', "né à ", "日本語", "🙂🙃", "\u2028", "line\n", "tab\t"]


def cut(items: Sequence[Any], rng: random.Random, most: int) -> list[Sequence[Any]]:
    out, at = [], 0
    while at < len(items):
        size = rng.randint(1, most)
        out.append(items[at : at + size])
        at += size
    return out


def answers(
    seed: int, limit: int, *, words: int = 6, at_once: int = 3
) -> Callable[[EngineRequest], tuple[Batches, bool]]:
    """Return an engine's answers: the same ids in every run, cut anew, and broken off once for some seeds."""
    rng = random.Random(seed)
    ids = [*"".join(rng.choices(WORDS, k=rng.randint(0, words))).encode(), 256]
    breaks_at = rng.randint(1, len(ids)) if rng.random() < 0.4 else None
    sizes = random.Random(seed + 1)

    def batches(request: EngineRequest) -> tuple[Batches, bool]:
        done = len(request.ids) - 2
        first = done == 0
        broken = first and breaks_at is not None and breaks_at < min(limit, len(ids))
        stop = breaks_at if broken else min(limit, len(ids))
        cached = {"cached_tokens": sizes.choice([0, 1])}
        messages = [chunk(part, **cached) for part in cut(ids[done:stop], sizes, 2)]
        if not broken:
            messages.append(end("length" if stop is not None and stop < len(ids) else "stop"))
        return cut(messages, sizes, at_once), broken

    return batches


async def told(bench: Bench, seed: int, api: str, limit: int, *, cuts: bool) -> Client:
    reading, presenter = reading_of(api, limit)
    request = replace(reading.request, prompts=HI)
    now_s = SystemClock().monotonic_s()
    context = RequestContext("req_1", now_s, now_s + 5, received_ms=1, token="0" * 32)
    client = Client(presenter, seed)
    run = bench.generator.start(api, request, context)
    await run.tell(client.receive, client.ready, client if cuts else None)
    return client


@pytest.mark.parametrize("api", ["chat", "completions"])
async def test_a_client_gets_the_same_bytes_whether_events_are_made_or_not(
    tmp_path: Path, api: str
) -> None:
    past = broken = waited = 0
    engine, other = MessageEngine(answers(0, 1)), MessageEngine(answers(0, 1))
    async with bench_of(tmp_path, {"a": engine, "b": other}) as bench:
        for seed in range(100):
            limit = random.Random(seed).randint(1, 60)
            seen, client = [], None
            for cuts in (False, True):
                engine.batches = other.batches = answers(seed, limit)
                engine.requests.clear()
                other.requests.clear()
                client = await told(bench, seed, api, limit, cuts=cuts)
                outcome = bench.outcomes[-1]
                seen.append(
                    (client.sent, outcome.kind, outcome.completion_tokens, outcome.attempts)
                )
            assert seen[0] == seen[1], seed
            assert seen[1][1] == "ok", seed
            assert bench.idle()
            assert client is not None
            past += client.put_bytes
            waited += client.waited
            broken += seen[1][3] > 1
    assert past > 5_000
    assert broken > 10
    assert waited > 50


async def test_a_limit_is_charged_and_ends_answers_alike_whether_events_are_made_or_not(
    tmp_path: Path,
) -> None:
    """Whatever is left, expected and comes at once: the same bytes, ends and charges."""
    past = ended = owed = 0
    for seed in range(50):
        seen: list[list[Any]] = [[], []]
        for cuts in (False, True):
            rng, world = random.Random(seed), LimitWorld()
            kinds: list[Literal["debt", "finish"]] = ["debt", "finish"]
            shares = [
                world.add(
                    limit("tokens", scope=f"tenant={name}", on_exhausted=rng.choice(kinds)),
                    rng.choice([rng.randint(300, 900), 3_000]),
                )
                for name in "ab"[: rng.randint(1, 2)]
            ]
            door = door_of(world)
            engine, other = MessageEngine(answers(0, 1)), MessageEngine(answers(0, 1))
            for one in (engine, other):
                one.model_card = dataclasses.replace(one.model_card, context=5_000)
            async with bench_of(tmp_path, {"a": engine, "b": other}, admission=door) as bench:
                for number in range(12):
                    most = rng.choice([20, 200, 700])
                    at_once = rng.choice([1, 1, 3, 20])
                    script = answers(100 * seed + number, most, words=120, at_once=at_once)
                    engine.batches = other.batches = script
                    client = await told(bench, seed, "chat", most, cuts=cuts)
                    outcome = bench.outcomes[-1]
                    charged = [(whole(one), one.debt) for one in shares]
                    seen[cuts].append(
                        (client.sent, outcome.kind, outcome.completion_tokens, charged)
                    )
                    past += client.put_bytes
                    by_limit = outcome.completion_tokens not in (20, 200, 700)
                    ended += by_limit and b'"finish_reason":"length"' in client.sent
                    owed += any(one.debt for one in shares)
                assert bench.idle()
                assert door.tallies.open == 0
        assert seen[0] == seen[1], seed
    assert past > 500_000
    assert ended > 10
    assert owed > 20


async def test_a_client_that_is_gone_ends_the_call_and_nothing_is_told_any_more(
    tmp_path: Path,
) -> None:
    class Gone(Client):
        def put(self, frames: bytes) -> bool:
            raise ConnectionResetError("the client is gone")

    messages = [chunk([one]) for one in b"never said to its end"]
    engine = MessageEngine(lambda _: ([[one] for one in messages], False))
    async with bench_of(tmp_path, {"a": engine}) as bench:
        reading, presenter = reading_of("chat", 50)
        now_s = SystemClock().monotonic_s()
        context = RequestContext("req_1", now_s, now_s + 5, received_ms=1, token="0" * 32)
        client = Gone(presenter, 1)
        run = bench.generator.start("chat", replace(reading.request, prompts=HI), context)
        with pytest.raises(ConnectionResetError):
            await run.tell(client.receive, client.ready, client)
        assert b'"content":"n"' in client.sent
        assert b'"content":"e"' not in client.sent
        assert bench.outcomes[-1].kind == "client_gone"
        assert bench.idle()


@pytest.mark.parametrize(
    "more",
    [
        {"n": 2},
        {"logprobs": True},
        {"stop": ["!"]},
        {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
        {"return_token_ids": True},
    ],
    ids=str,
)
async def test_what_shows_more_than_text_is_told_in_events(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    engine = MessageEngine(lambda _: ([[chunk([one])] for one in b"abc"] + [[end()]], False))
    async with bench_of(tmp_path, {"a": engine}) as bench:
        reading, presenter = reading_of("chat", 50, more)
        now_s = SystemClock().monotonic_s()
        context = RequestContext("req_1", now_s, now_s + 5, received_ms=1, token="0" * 32)
        client = Client(presenter, 1)
        run = bench.generator.start("chat", replace(reading.request, prompts=HI), context)
        await run.tell(client.receive, client.ready, client)
        assert client.put_bytes == 0
        assert client.sent.count(b'"content":"') >= 3
