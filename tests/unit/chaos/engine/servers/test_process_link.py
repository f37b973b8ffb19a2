"""Pairs over TCP, as processes have them: gRPC and HTTP, deaths and garbage."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import ClientSession

from smg_chaos.engine.plans import Wanted
from smg_chaos.engine.scripts.scripts import TEXTS
from support.engines.engine_client import Heard, asking
from support.engines.simulated_engine import PROMPT, Served, served
from support.engines.simulated_pair import served_pair

SAYS = TEXTS["fixed"]
GIVE = {"do_remote_decode": True, "do_remote_prefill": False}


def port_of(prefill: Served) -> int:
    return prefill.engines[0].pairs.where[1]


def together(*asks: Callable[[], Heard]) -> list[Heard]:
    """Ask at once, each from a thread."""
    answers: dict[int, Heard] = {}

    def ask(at: int) -> None:
        answers[at] = asks[at]()

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(asks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [answers[at] for at in range(len(asks))]


def within(seconds: float, condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until_s, "it did not come to that"
        time.sleep(0.01)


def in_room(pair: tuple[Served, Served], contract: str, number: int, **fields: Any) -> list[Heard]:
    where = {"room": number, "room_host": "127.0.0.1", "room_port": port_of(pair[0]), **fields}

    def call(side: Served) -> Callable[[], Heard]:
        def ask() -> Heard:
            with asking(side.address, contract, PROMPT) as asker:
                return asker.generate(**where)

        return ask

    return together(*(call(side) for side in pair))


@pytest.mark.parametrize("server", ["grpc", "h2"])
@pytest.mark.parametrize("contract", ["sglang", "tokenspeed"])
def test_pairs_meet_in_rooms_over_tcp(server: str, contract: str) -> None:
    with served_pair(contract, server=server) as pair:
        for number in (5, 6):
            first, second = in_room(pair, contract, number, max_tokens=20)
            assert (first.code, second.code) == ("OK", "OK")
            assert len(second.ids) == 20
            assert second.ids[0] == first.ids[0]
        prefill, decode = (side.engines[0] for side in pair)
        assert (prefill.tally.handed_over, decode.tally.taken_over) == (2, 2)


def test_a_room_that_nobody_fills_is_given_up() -> None:
    with served_pair(pair_wait_s=0.2) as pair:
        first, second = in_room(pair, "sglang", 5, max_tokens=3)
        assert (first.code, second.code) == ("OK", "OK")
        with asking(pair[1].address, "sglang", PROMPT) as asker:
            port = port_of(pair[0])
            assert asker.generate(room=9, room_host="127.0.0.1", room_port=port).code == "INTERNAL"
            assert asker.generate(room=9, room_host="nowhere.invalid", room_port=1).code == (
                "INTERNAL"
            )
            with socket.create_server(("127.0.0.1", 0)) as deaf:
                number = deaf.getsockname()[1]
                answer = asker.generate(room=9, room_host="127.0.0.1", room_port=number)
                assert answer.code == "INTERNAL"


def test_the_death_of_the_first_engine_ends_the_second_call_over_tcp() -> None:
    with served_pair(prefill_faults=["die:request=1"]) as (prefill, decode):
        port = port_of(prefill)
        where: dict[str, Any] = {"room": 5, "room_host": "127.0.0.1", "room_port": port}
        shelf = prefill.engines[0].pairs.shelf

        def second() -> Heard:
            with asking(decode.address, "sglang", PROMPT) as asker:
                return asker.generate(**where)

        def first() -> Heard:
            with asking(prefill.address, "sglang", PROMPT) as asker:
                within(30.0, lambda: shelf.asked_for == 1)
                return asker.generate(**where)

        codes = [heard.code for heard in together(first, second)]
        assert codes == ["UNAVAILABLE", "INTERNAL"]


@pytest.mark.parametrize(
    "said", [b"\n", b"nonsense\n", b'{"took": true}\n', b"[]\n", b'{"key": 5}\n', b"x" * 70_000]
)
def test_garbage_is_shown_the_door(said: bytes) -> None:
    with served_pair() as pair:
        with socket.create_connection(("127.0.0.1", port_of(pair[0])), timeout=10) as one:
            one.sendall(said)
            with suppress(ConnectionResetError):  # it need not even read the rest
                assert one.recv(100) == b""
        first, second = in_room(pair, "sglang", 5, max_tokens=3)
        assert (first.code, second.code) == ("OK", "OK")


def test_a_key_in_pieces_is_a_key() -> None:
    with (
        served_pair() as pair,
        socket.create_connection(("127.0.0.1", port_of(pair[0])), timeout=10) as one,
    ):
        for byte in b'{"key": "room 5"}\n':
            one.sendall(bytes((byte,)))

        def ask() -> Heard:
            with asking(pair[0].address, "sglang", PROMPT) as asker:
                return asker.generate(room=5, room_host="h", room_port=1)

        threads = threading.Thread(target=ask)
        threads.start()
        handed = json.loads(one.makefile().readline())
        assert handed["tokens"] == len(PROMPT)
        one.sendall(b'{"took": true}\n')
        threads.join(30)
        assert pair[0].engines[0].tally.handed_over == 1


def test_connectors_fetch_over_tcp() -> None:
    with served_pair("vllm", "nixl") as (prefill, decode):
        with asking(prefill.address, "vllm", PROMPT) as asker:
            first = asker.generate(transfer=json.dumps(GIVE), max_tokens=1, ignore_eos=True)
        told = first.complete["kv_transfer_params_json"]
        assert json.loads(told)["remote_port"] == port_of(prefill)
        with asking(decode.address, "vllm", PROMPT) as asker:
            second = asker.generate(transfer=told, max_tokens=9)
            assert len(second.ids) == 9
            again = asker.generate(transfer=told, max_tokens=9)
            assert again.complete["finish_reason"] == "error"


# ── HTTP ─────────────────────────────────────────────────────────────────────


def chat(**more: Any) -> dict[str, Any]:
    body = {"model": "simulated", "messages": [{"role": "user", "content": "Hello there?"}]}
    return {**body, **more}


async def test_http_engines_meet_in_rooms() -> None:
    with served_pair("openai", "sglang") as (prefill, decode):
        where = {"bootstrap_host": "127.0.0.1", "bootstrap_port": port_of(prefill)}
        async with ClientSession() as session:

            async def ask(side: Served, **more: Any) -> tuple[int, dict[str, Any]]:
                url = f"http://{side.address}/v1/chat/completions"
                async with session.post(url, json=chat(**more)) as response:
                    return response.status, await response.json()

            room = {**where, "bootstrap_room": 5}
            async with asyncio.TaskGroup() as group:
                first = group.create_task(ask(prefill, **room))
                second = group.create_task(ask(decode, **room))
            assert (first.result()[0], second.result()[0]) == (200, 200)
            assert second.result()[1]["choices"][0]["message"]["content"] == SAYS
            assert first.result()[1]["usage"]["completion_tokens"] == 1
            assert (await ask(decode))[0] == 400
            assert (await ask(decode, bootstrap_room="x"))[0] == 400


async def test_http_engines_pass_on_what_a_connector_says() -> None:
    with served_pair("openai", "nixl") as (prefill, decode):
        async with ClientSession() as session:

            async def ask(side: Served, **more: Any) -> dict[str, Any]:
                url = f"http://{side.address}/v1/chat/completions"
                async with session.post(url, json=chat(**more)) as response:
                    answer = await response.json()
                    assert response.status == more.pop("status", 200), answer
                    assert isinstance(answer, dict)
                    return answer

            first = await ask(prefill, kv_transfer_params=GIVE, max_tokens=1)
            told = first["kv_transfer_params"]
            assert told["remote_port"] == port_of(prefill)
            second = await ask(decode, kv_transfer_params=told)
            assert second["choices"][0]["message"]["content"] == SAYS
            assert "kv_transfer_params" not in second
            url = f"http://{decode.address}/v1/chat/completions"
            async with session.post(url, json=chat(kv_transfer_params=told)) as response:
                assert response.status == 500
            async with session.post(url, json=chat(kv_transfer_params=[1])) as response:
                assert response.status == 400


@pytest.mark.parametrize("how", ["body", "header"])
async def test_http_engines_have_ranks(how: str) -> None:
    with served(Wanted(settings={"contract": "openai", "ranks": 3})) as engines:
        async with ClientSession() as session:
            url = f"http://{engines.address}/v1/chat/completions"
            headers = {"X-data-parallel-rank": "2"} if how == "header" else {}
            body = chat(data_parallel_rank=2) if how == "body" else chat()
            body["messages"][0]["content"] *= 9
            for cached in (0, 32):
                async with session.post(url, json=body, headers=headers) as response:
                    usage = (await response.json())["usage"]
                    assert (usage["prompt_tokens_details"]["cached_tokens"] > 0) == (cached > 0)
            async with session.post(url, json=chat(data_parallel_rank=3)) as response:
                assert response.status == 400
