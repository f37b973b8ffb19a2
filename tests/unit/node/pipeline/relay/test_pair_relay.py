"""Relayed requests on two HTTP workers: what each is sent, and who is blamed for what."""

import json
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.journey import Chosen
from smg_node.pipeline.relay.relay_call import Head
from support.engines.relay_bench import (
    relay_bench,
    told,
    worker,
)
from support.engines.relay_pairs import (
    ANSWER,
    CACHED,
    DONE,
    EVENT,
    IN_TURN,
    PORT,
    STYLES,
    TRANSFER,
    Network,
    bodies,
    named,
    said,
    steps,
)

DETAILS = {"cached_tokens": CACHED}
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": DETAILS}
PUT_RIGHT = {**ANSWER, "usage": USAGE}
"""The answer, with what only the first worker can tell."""


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("stream", [False, True])
async def test_one_answer_comes_of_two_workers(tmp_path: Path, style: str, stream: bool) -> None:
    net = Network(style)
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        head, body = await b.answer(stream=stream)
        assert (head.status, head.events) == (200, stream)
        assert body == EVENT + DONE if stream else json.loads(body) == PUT_RIGHT
        [first], [second] = p.calls, d.calls
        assert first.headers["x-request-id"] == second.headers["x-request-id"]
        chosen = [(step.role, step.worker) for step in steps(b, Chosen)]
        assert chosen == [("prefill", named(b, "p")), ("decode", named(b, "d"))]
        assert net.computed == 0
        [outcome] = b.outcomes
        assert outcome.kind == "ok"
        assert outcome.cached_tokens == CACHED, "the second worker's own cache is no saving"
        assert b.idle()
        assert (p.open, d.open, p.cut, d.cut) == (0, 0, 0, 0)


async def test_a_room_is_told_to_both_and_the_rest_stays_as_it_was(tmp_path: Path) -> None:
    net = Network("sglang")
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        wanted: dict[str, Any] = {
            "max_tokens": 7,
            "stop": ["x"],
            "stream_options": {"include_usage": True},
        }
        await b.answer(stream=True, **wanted)
        [first], [second] = bodies(p), bodies(d)
        room = {"bootstrap_host": "p", "bootstrap_port": PORT}
        assert second.items() >= {**room, **wanted, "stream": True}.items()
        assert 0 <= second["bootstrap_room"] < 2**31
        assert first == {
            **{key: value for key, value in second.items() if key != "stream_options"},
            "stream": False,
        }
        await b.answer()
        assert bodies(p)[1] == bodies(d)[1]
        assert bodies(d)[1]["bootstrap_room"] != second["bootstrap_room"]


@pytest.mark.parametrize("style", IN_TURN)
async def test_the_first_of_two_is_asked_for_one_word_and_the_second_for_all(
    tmp_path: Path, style: str
) -> None:
    net = Network(style)
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        asked: dict[str, Any] = {
            "max_completion_tokens": 99,
            "min_tokens": 5,
            "stop": ["x"],
            "stop_token_ids": [1],
            "logprobs": True,
            "top_logprobs": 2,
            "tool_choice": "auto",
            "response_format": {"type": "json_object"},
            "stream_options": {"include_usage": True},
        }
        await b.answer(stream=True, **asked)
        [first], [second] = bodies(p), bodies(d)
        told_first = first.pop("kv_transfer_params", None)
        told_second = second.pop("kv_transfer_params", None)
        messages = [{"role": "user", "content": "hi"}]
        assert first == {
            "model": "m",
            "messages": messages,
            "stream": False,
            "max_tokens": 1,
            "max_completion_tokens": 1,
            "ignore_eos": True,
            "tool_choice": "auto",
            "response_format": {"type": "json_object"},
        }
        assert second == {"model": "m", "messages": messages, "stream": True, **asked}
        if style == "nixl":
            assert told_first == {"do_remote_decode": True, "do_remote_prefill": False}
            assert f'"kv_transfer_params":{TRANSFER}'.encode() in d.calls[0].body, "untouched"
        elif style == "mooncake":
            assert told_first["do_remote_decode"] is True
            assert told_second == {
                "do_remote_decode": False,
                "do_remote_prefill": True,
                "transfer_id": told_first["transfer_id"],
                "remote_engine_id": "e7",
                "remote_bootstrap_addr": f"http://p:{PORT}",
            }
        else:
            assert (told_first, told_second) == (None, None)


async def test_each_of_two_gets_the_name_it_has_for_the_model(tmp_path: Path) -> None:
    net = Network("nixl")
    p, d = net.prefill("theirs"), net.decode("org/other")
    queries = {name: f"{query}&model=m" for name, query in said(net).items()}
    async with relay_bench(tmp_path, queries=queries, p=p, d=d) as b:
        await b.answer()
        assert [one["model"] for one in (*bodies(p), *bodies(d))] == ["theirs", "org/other"]


# ── What cannot be shared ────────────────────────────────────────────────────

ODD: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"n": 2}),
    ("chat", {"prompt_logprobs": 1}),
    ("completions", {"prompt": ["a", "b"]}),
    ("completions", {"prompt": [[1, 2], [3]]}),
    ("completions", {"prompt": "a", "echo": True, "logprobs": 1}),
    ("completions", {"prompt": "a", "best_of": 3}),
    ("completions", {"prompt": "a", "max_tokens": 0}),
]


@pytest.mark.parametrize(("api", "asked"), ODD)
async def test_where_blocks_are_handed_over_in_turn_the_second_one_does_it_alone(
    tmp_path: Path, api: str, asked: dict[str, Any]
) -> None:
    net = Network("nixl")
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        await b.answer(api, **asked)
        assert p.calls == []
        [second] = bodies(d)
        assert "kv_transfer_params" not in second
        assert net.computed == 1
        assert second.items() >= asked.items()
        assert b.idle()


@pytest.mark.parametrize(("count", "holder"), [(1, "p"), (2, "d")])
async def test_a_prompt_is_cached_where_it_was_worked_off(
    tmp_path: Path, count: int, holder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Network("nixl")
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        confirmed: list[str] = []
        monkeypatch.setattr(
            b.placer, "confirmed", lambda hold, now_s: confirmed.append(hold.caching[0].url.host)
        )
        await b.answer(n=count)
        assert confirmed == [holder]


@pytest.mark.parametrize(("api", "asked"), ODD)
async def test_rooms_take_one_answer_to_one_prompt_and_say_so(
    tmp_path: Path, api: str, asked: dict[str, Any]
) -> None:
    net = Network("sglang")
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        with pytest.raises(SmgError, match="one answer to one prompt") as caught:
            await b.answer(api, **asked)
        assert caught.value.status == 501
        assert (p.calls, d.calls) == ([], [])
        assert b.idle()


@pytest.mark.parametrize(("api", "asked"), ODD)
async def test_a_worker_that_does_everything_takes_what_rooms_cannot(
    tmp_path: Path, api: str, asked: dict[str, Any]
) -> None:
    net = Network("sglang")
    p, d, r = net.prefill(), net.decode(), worker(lambda call: told(ANSWER))
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d, r=r) as b:
        await b.answer(api, **asked)
        assert (len(p.calls), len(d.calls), len(r.calls)) == (0, 0, 1)
        await b.answer()
        assert (len(p.calls), len(d.calls), len(r.calls)) == (1, 1, 1)


@pytest.mark.parametrize("prompt", ["a", ["a"], [1, 2, 3], [[1, 2, 3]]])
async def test_one_prompt_is_one_however_it_is_spelled(tmp_path: Path, prompt: object) -> None:
    net = Network("sglang")
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        await b.answer("completions", prompt=prompt, n=1, echo=True, max_tokens=4)
        assert (len(p.calls), len(d.calls)) == (1, 1)


async def test_pairs_get_nothing_but_generations(tmp_path: Path) -> None:
    net = Network("nixl")
    p, d, r = net.prefill(), net.decode(), worker(lambda call: told({"data": []}))
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d, r=r) as b:
        await b.answer("embeddings", input="x")
        assert (len(p.calls), len(d.calls), len(r.calls)) == (0, 0, 1)
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        with pytest.raises(SmgError, match="serves /v1/embeddings") as caught:
            await b.answer("embeddings", input="x")
        assert caught.value.status == 501
        assert (p.calls, d.calls) == ([], [])


async def test_a_request_goes_to_a_rank_of_each_and_the_room_agrees(tmp_path: Path) -> None:
    net = Network("sglang", ranks=4)
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        for _ in range(6):
            await b.answer()
        firsts, seconds = bodies(p), bodies(d)
        for first, second in zip(firsts, seconds, strict=True):
            assert first["bootstrap_room"] == second["bootstrap_room"]
            assert first["bootstrap_room"] % 4 == first["data_parallel_rank"]
            assert second.get("data_parallel_rank") in (None, second["bootstrap_room"] % 4)
        assert len({first["data_parallel_rank"] for first in firsts}) > 1
        assert b.idle()


async def test_a_worker_with_ranks_that_does_everything_is_told_which(tmp_path: Path) -> None:
    one = worker(lambda call: told(ANSWER))
    one.pages["/get_server_info"] = told({"dp_size": 2})
    async with relay_bench(tmp_path, w=one) as b:
        for _ in range(8):
            await b.answer()
        assert {body["data_parallel_rank"] for body in bodies(one)} == {0, 1}


@pytest.mark.parametrize("role", ["p", "d"])
async def test_half_a_pair_alone_serves_nobody(tmp_path: Path, role: str) -> None:
    net = Network("nixl")
    alone = net.prefill() if role == "p" else net.decode()
    bench = relay_bench(tmp_path, queries=said(net), p=alone)
    if role == "d":
        bench = relay_bench(tmp_path, queries=said(net), d=alone)
    async with bench as b:
        with pytest.raises(SmgError) as caught:
            await b.answer(timeout_s=2)
        assert caught.value.status == 503
        assert alone.calls == []


@pytest.mark.parametrize("details", [None, {}])
async def test_of_a_first_worker_that_does_not_tell_the_second_ones_word_stays(
    tmp_path: Path, details: object
) -> None:
    net = Network("store")
    p, d = net.prefill(), net.decode()
    p.says = lambda call: told({"usage": {"prompt_tokens": 9, "prompt_tokens_details": details}})
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        _, body = await b.answer()
        assert json.loads(body) == ANSWER
        assert b.outcomes[0].cached_tokens == 8


async def test_a_head_comes_only_when_the_second_one_speaks(tmp_path: Path) -> None:
    net = Network("sglang")
    p, d = net.prefill(), net.decode()
    async with relay_bench(tmp_path, queries=said(net), p=p, d=d) as b:
        heard = [piece async for piece in b.start(stream=True).answer()]
        assert isinstance(heard[0], Head)
        assert heard[1:] == [EVENT + DONE]
