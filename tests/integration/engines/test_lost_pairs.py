"""Pairs of real processes that lose a half, a hand-over or their client; and halves that have ranks."""

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import grpc
import pytest
from smg_grpc_proto import sglang_scheduler_pb2 as sglang_words
from smg_grpc_proto import sglang_scheduler_pb2_grpc as sglang_rpc
from smg_grpc_proto import vllm_engine_pb2 as vllm_words
from smg_grpc_proto import vllm_engine_pb2_grpc as vllm_rpc

from support.engines.pair_answers import (
    ALONE,
    ANY_PORT,
    BLOCK,
    MAKES,
    QUICK,
    READY_S,
    SPEAK,
    body_of,
    cached_of,
    chosen,
    steps_of,
    urls_of,
    whole_of,
)
from support.http.chat_client import CHAT, JSON, becomes, port_of, say
from support.http.raw_http import ask, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

FREE_S: Final = 5.0
"""The gateway waits two seconds for a hand-over that nobody needs any more; the rest is for busy machines."""


# ── When one is lost ─────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", ["sglang", "nixl"])
async def test_a_hand_over_that_fails_is_tried_again_and_neither_worker_is_blamed(
    tmp_path: Path, make: str
) -> None:
    said = (*MAKES[make], "--model", make, *SPEAK)
    fault = ["transfer-fails:every=3"]
    with ExitStack() as stack:
        run = stack.enter_context
        first = run(running_simulated(tmp_path / "p", *said, "--role", "prefill", *ANY_PORT))
        second = run(running_simulated(tmp_path / "d", *said, "--role", "decode", faults=fault))
        alone = run(running_simulated(tmp_path / "a", *SPEAK, "--model", ALONE))
        urls = [url for one in (first, second, alone) for url in urls_of(one)]
        node = run(running_node(tmp_path / "node", workers=urls, flags=QUICK))
        port = port_of(node.url)
        right = whole_of(await say(port, body_of(CHAT, ALONE)))
        again = 0
        for _ in range(6):
            answer = await say(port, body_of(CHAT, make))
            assert whole_of(answer) == right
            again += len(await chosen(port, answer)) > 2
        assert again
        rows = (await ask(port, "GET", "/workers")).json()["workers"]
        assert {row["breaker"]["failures"] for row in rows} == {0}, rows
        # Breakers hear of these workers, and of what they did well.
        assert all(row["breaker"]["samples"] for row in rows)


@pytest.mark.parametrize("lost", ["prefill", "decode"])
async def test_a_worker_alone_fills_in_for_a_pair_that_lost_a_half_and_gives_way_to_it_again(
    tmp_path: Path, lost: str
) -> None:
    said = ("--contract", "sglang", "--model", "m", *SPEAK)
    flags = {"prefill": ("--role", "prefill", *ANY_PORT), "decode": ("--role", "decode")}
    kept = "decode" if lost == "prefill" else "prefill"
    with ExitStack() as stack:
        run = stack.enter_context
        stays = run(running_simulated(tmp_path / "stays", *said, *flags[kept]))
        alone = run(running_simulated(tmp_path / "alone", *said))
        goes = run(running_simulated(tmp_path / "goes", *said, *flags[lost]))
        urls = [url for one in (stays, alone, goes) for url in urls_of(one)]
        node = run(running_node(tmp_path / "node", workers=urls, flags=QUICK))
        here = port_of(node.url)
        right = whole_of(await say(here, body_of(CHAT, "m")))

        async def roles() -> list[str]:
            answer = await say(here, body_of(CHAT, "m"))
            assert whole_of(answer) == right
            return [role for role, _ in await chosen(here, answer)]

        assert await roles() == ["prefill", "decode"]
        goes.process.signal(signal.SIGKILL)
        goes.process.wait(READY_S)
        # Calls may find out before the node does, but no client does.
        async with asyncio.timeout(READY_S):
            while (went := await roles()) != [""]:
                assert went == ["prefill", "decode", ""]
        run(running_simulated(tmp_path / "back", *said, *flags[lost], port=goes.port))
        ready = "/workers?status=ready"
        await becomes(lambda: node_rows(node, ready) == len(urls), READY_S, "all are ready again")
        assert await roles() == ["prefill", "decode"]


def node_rows(node: RunningNode, path: str) -> int:
    with urlopen(node.url + path, timeout=10) as answer:
        return int(json.load(answer)["total"])


# ── When nobody waits any more ───────────────────────────────────────────────


@pytest.mark.parametrize("make", ["sglang", "nixl"])
@pytest.mark.parametrize("speaks", [False, True], ids=["in its prompt", "in its answer"])
async def test_a_client_that_leaves_frees_both_halves(
    tmp_path: Path, make: str, *, speaks: bool
) -> None:
    endless = ("--script", "endless", "--itl-ms", "2", "--context", "100000", "--blocks", "8192")
    said = (*MAKES[make], "--model", make, *endless)
    tokens_per_s = "20000" if speaks else "20"
    prefill = ("--role", "prefill", "--prefill-tokens-per-s", tokens_per_s, *ANY_PORT)
    with ExitStack() as stack:
        run = stack.enter_context
        first = run(running_simulated(tmp_path / "p", *said, *prefill))
        second = run(running_simulated(tmp_path / "d", *said, "--role", "decode"))
        urls = [url for one in (first, second) for url in urls_of(one)]
        node = run(running_node(tmp_path / "node", workers=urls, flags=QUICK))
        loads = [run(load_of(one.address, make)) for one in (first, second)]
        body = body_of(CHAT, make, ignore_eos=True, max_tokens=50_000)
        body["messages"][0]["content"] = "once upon a time " * 40
        for _ in range(2):
            async with connect(port_of(node.url)) as client:
                sent = {**body, "stream": True}
                await client.send("POST", CHAT, json.dumps(sent).encode(), JSON)
                if speaks:
                    await client.head()
                    assert await client.chunk()
                busy = loads[1] if speaks else loads[0]
                await becomes(busy, READY_S, "somebody works for it")
                client.vanish()
                await becomes(lambda: not any(load() for load in loads), FREE_S, "both are idle")

        def gone() -> bool:
            return node.metric("smg_node_generations_total", outcome="client_gone") == 2

        await becomes(gone, READY_S, "both are told of as clients that went away")


@contextmanager
def load_of(address: str, make: str) -> Iterator[Callable[[], int]]:
    """Keep a connection to an engine for asking how many calls it has."""
    stub, words = (sglang_rpc.SglangSchedulerStub, sglang_words)
    if make == "nixl":
        stub, words = (vllm_rpc.VllmEngineStub, vllm_words)
    with grpc.insecure_channel(address) as channel:
        engine = stub(channel)

        def load() -> int:
            answer = engine.GetLoads(words.GetLoadsRequest(), timeout=10)
            return sum(int(one.num_running_reqs + one.num_waiting_reqs) for one in answer.loads)

        load()
        yield load


# ── Ranks ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", ["sglang", "nixl", "mooncake"])
async def test_both_halves_of_a_pair_may_have_ranks(tmp_path: Path, make: str) -> None:
    said = (*MAKES[make], "--model", make, *SPEAK)
    with ExitStack() as stack:
        run = stack.enter_context
        prefill = ("--role", "prefill", "--ranks", "3", *ANY_PORT)
        first = run(running_simulated(tmp_path / "p", *said, *prefill))
        second = run(running_simulated(tmp_path / "d", *said, "--role", "decode", "--ranks", "2"))
        alone = run(running_simulated(tmp_path / "a", *SPEAK, "--model", ALONE))
        urls = [url for one in (first, second, alone) for url in urls_of(one)]
        port = port_of(run(running_node(tmp_path / "node", workers=urls)).url)
        went = set()
        for number in range(9):
            turns = [{"role": "user", "content": f"{number}: " + "once upon a time " * 40}]
            right = whole_of(await say(port, body_of(CHAT, ALONE, messages=turns)))
            answers = [await say(port, body_of(CHAT, make, messages=turns)) for _ in range(2)]
            assert [whole_of(answer) for answer in answers] == [right, right]
            rank, again = [(await steps_of(port, answer))[0]["rank"] for answer in answers]
            assert rank == again
            assert cached_of(answers[0]) < BLOCK < cached_of(answers[1])
            went.add(rank)
        assert len(went) > 1
