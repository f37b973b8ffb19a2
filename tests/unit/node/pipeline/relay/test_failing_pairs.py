"""Relayed requests on two HTTP workers: who refuses, who breaks, who is blamed, and what is left open."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.journey import Broke
from smg_node.engines.contracts.kv_transfer import TRANSFER_MAX_BYTES
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.transport import HttpCall
from smg_node.engines.transport.transport import TransportError
from smg_node.pipeline.pairs import pair_calls as pair_legs
from smg_node.pipeline.relay.pairs import pair_bodies as relay_halves
from smg_node.system_clock import SystemClock
from support.engines.relay_bench import (
    Told,
    lost,
    relay_bench,
    streamed,
    told,
    unreached,
)
from support.engines.relay_pairs import (
    ANSWER,
    CACHED,
    DONE,
    EVENT,
    IN_TURN,
    STYLES,
    Network,
    named,
    said,
    steps,
)

DETAILS = {"cached_tokens": CACHED}
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": DETAILS}
PUT_RIGHT = {**ANSWER, "usage": USAGE}
"""The answer, with what only the first worker can tell."""
REQUESTS = 6
"""Of so many, chance sends some to either of two workers that are alike."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_legs, "HANDOVER_S", 0.02)
    monkeypatch.setattr(pair_legs, "BLAME_S", 0.05)


# ── Mistakes of clients ──────────────────────────────────────────────────────


@pytest.mark.parametrize("style", STYLES)
async def test_what_the_first_one_says_of_a_mistake_is_the_answer(
    tmp_path: Path, style: str
) -> None:
    net = Network(style)
    p, d = net.prefill(), net.decode()
    p.says = lambda call: told({"error": {"message": "too long"}}, 400)
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer(stream=True)
        assert (caught.value.status, caught.value.message) == (400, "too long")
        assert len(d.calls) == (style == "sglang")
        assert (p.open, d.open) == (0, 0)
        [outcome] = b.outcomes
        assert (outcome.kind, outcome.status) == ("refused", 400)
        now_s = SystemClock().monotonic_s()
        heard = {one.url.host: one.breaker.view(now_s).samples for one in b.fleet.workers()}
        assert heard == {"p": 1, "d": 0}, "whoever had no part in it is not said to be well"
        assert steps(b, Broke) == []
        assert b.idle()


@pytest.mark.parametrize("style", STYLES)
async def test_what_the_second_one_says_of_a_mistake_is_the_answer(
    tmp_path: Path, style: str
) -> None:
    net = Network(style)
    p, d = net.prefill(), net.decode()
    d.says = lambda call: told({"error": {"message": "no"}}, 422)
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer()
        assert (caught.value.status, caught.value.message) == (400, "no")
        assert (p.open, d.open) == (0, 0)
        assert b.outcomes[0].kind == "refused"
        assert b.idle()


# ── What breaks ──────────────────────────────────────────────────────────────

BAD: list[Told | TransportError] = [
    unreached(),
    told({}, 500),
    told({}, 503),
    told({}, 429),
    told({}, 401),
    Told((b"{", lost())),
    Told((b"no json",)),
    Told((b"[]",)),
]
NO_WORDS = [told({"kv_transfer_params": [1]}), told({"kv_transfer_params": "x"})]


@pytest.mark.parametrize(
    ("style", "bad"),
    [
        *((style, bad) for style in STYLES for bad in BAD),
        *((style, bad) for style in IN_TURN for bad in NO_WORDS),
    ],
)
async def test_a_first_worker_that_fails_is_passed_over(
    tmp_path: Path, style: str, bad: Told | TransportError
) -> None:
    net = Network(style)
    good, failing, d = net.prefill(), net.prefill(), net.decode()
    failing.says = lambda call: bad
    queries = said(net, p2="") | {"p2": net.query("prefill", "&label.bootstrap_host=p")}
    async with relay_bench(tmp_path, queries=queries, p=failing, p2=good, d=d) as b:
        for _ in range(2):
            head, body = await b.answer(stream=True)
            assert (head.status, body) == (200, EVENT + DONE)
        assert len(good.calls) == 2
        assert failing.calls
        broke = steps(b, Broke)
        assert broke
        assert all(step.then == "tried again" for step in broke)
        assert [one.kind for one in b.outcomes] == ["ok", "ok"]
        assert (failing.open, good.open, d.open) == (0, 0, 0)
        assert b.idle()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "bad",
    [
        unreached(),
        told({}, 500),
        told({}, 503),
        streamed(lost()),
        streamed(),
        streamed(b'data: {"error": {"message":"transfer failed","code":500}}\n\n', DONE),
    ],
)
async def test_a_second_worker_that_fails_before_its_first_byte_is_passed_over(
    tmp_path: Path, style: str, bad: Told | TransportError
) -> None:
    net = Network(style)
    p, good, failing = net.prefill(), net.decode(), net.decode()
    failing.says = lambda call: bad
    queries = {**said(net), "d2": net.query("decode")}
    async with relay_bench(tmp_path, queries=queries, p=p, d=failing, d2=good) as b:
        for _ in range(REQUESTS):
            head, body = await b.answer(stream=True)
            assert (head.status, body) == (200, EVENT + DONE)
        assert failing.calls, "chance chose it at least once"
        assert len(good.calls) == REQUESTS
        assert len(p.calls) == REQUESTS + len(failing.calls), "each pair has a prompt of its own"
        assert {step.worker for step in steps(b, Broke)} == {named(b, "d")}
        assert (p.open, failing.open, good.open) == (0, 0, 0)
        assert b.idle()


@pytest.mark.parametrize("style", STYLES)
async def test_after_the_first_byte_a_break_is_told(tmp_path: Path, style: str) -> None:
    net = Network(style)
    p, d = net.prefill(), net.decode()
    answers = d.says

    def torn(call: HttpCall) -> Told:
        whole = answers(call)
        assert isinstance(whole, Told)
        wait, takes = whole.pieces
        assert callable(takes)

        def half() -> bytes:
            takes()
            return EVENT

        return streamed(wait, half, lost())

    d.says = torn
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        with pytest.raises(SmgError, match="part of the answer"):
            await b.answer(stream=True)
        assert len(d.calls) == 1
        [broke] = steps(b, Broke)
        assert broke.worker == named(b, "d")
        assert (p.open, d.open) == (0, 0)
        assert b.idle()


async def test_a_hand_over_that_fails_is_held_against_neither(tmp_path: Path) -> None:
    net = Network("sglang", losing=1, patience_s=0.04)
    p, d = net.prefill(), net.decode()
    answers = d.says

    def gives_up(call: HttpCall) -> Told:
        whole = answers(call)
        assert isinstance(whole, Told)
        key = str(json.loads(call.body)["bootstrap_room"])
        return whole if net.kept[key].is_set() else told({}, 500)

    d.says = gives_up
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        _, body = await b.answer(stream=True)
        assert body == EVENT + DONE
        assert len(steps(b, Broke)) == 1
        for one in b.fleet.workers():
            assert one.breaker.view(SystemClock().monotonic_s()).failures == 0
        assert b.idle()


async def test_a_first_worker_that_says_nothing_is_given_up_like_any_stream(
    tmp_path: Path,
) -> None:
    net = Network("nixl")
    good, dumb, d = net.prefill(), net.prefill(), net.decode()
    dumb.says = lambda call: Told((30.0,))
    queries = {**said(net), "p2": net.query("prefill")}
    options = EngineOptions(first_event_s=0.1)
    async with relay_bench(tmp_path, queries=queries, options=options, p=dumb, p2=good, d=d) as b:
        for _ in range(2):
            await b.answer()
        assert dumb.calls
        assert {step.code for step in steps(b, Broke)} == {"first_event_timeout"}
        assert dumb.open == 0


async def test_a_first_answer_beyond_belief_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert relay_halves.ANSWER_MAX_BYTES > TRANSFER_MAX_BYTES
    monkeypatch.setattr("smg_node.pipeline.relay.pairs.pair_relay.ANSWER_MAX_BYTES", 100)
    net = Network("nixl")
    p, d = net.prefill(), net.decode()
    p.says = lambda call: Told((b" " * 60, b" " * 60))
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        with pytest.raises(SmgError, match="larger than 100 bytes") as caught:
            await b.answer()
        assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
        assert d.calls == []
        assert b.idle()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_leaves_nothing_open(
    tmp_path: Path, style: str, stream: bool
) -> None:
    net = Network(style)
    p, d = net.prefill(), net.decode()
    slow = Told((30.0,))
    for one in (p, d):
        says = one.says
        one.says = lambda call: slow
        async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
            run = b.start(stream=stream)

            async def read(run: Any = run) -> None:
                async with aclosing(run.answer()) as pieces:
                    async for _ in pieces:
                        pass

            async with asyncio.TaskGroup() as group:
                reading = group.create_task(read())
                while not one.open:  # noqa: ASYNC110 - workers in memory
                    await asyncio.sleep(0.001)
                reading.cancel()
            assert (p.open, d.open) == (0, 0)
            assert b.outcomes[-1].kind == "client_gone"
            assert b.idle()
        one.says = says
