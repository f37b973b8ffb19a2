"""A stand-in on the wire: pace, faults of delivery, admin routes, and clients that go away."""

import asyncio
import json
from io import BytesIO
from typing import Any

import pytest
from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ServerDisconnectedError,
)

from smg_chaos.vendor.vendor import Vendor
from support.providers.stand_ins import KEY, StandIn, sse, stand_in, threaded_stand_in

HEADERS = {"authorization": f"Bearer {KEY}"}
TEXT = "You said: hello (turns=1)"


def chat(text: str = "hello", **fields: Any) -> Any:
    messages = [{"role": "user", "content": text}]
    return {"model": "gpt-4.1-mini", "messages": messages, **fields}


async def post(session: ClientSession, where: StandIn, body: Any) -> ClientResponse:
    return await session.post(f"{where.base}/chat/completions", json=body, headers=HEADERS)


async def read_all(answer: ClientResponse) -> tuple[bytes, type[Exception] | None]:
    """Return what came, and what it ended in."""
    got = b""
    try:
        async for piece in answer.content.iter_any():
            got += piece
    except ClientError as error:
        return got, type(error)
    finally:
        answer.close()
    return got, None


async def broken(fault: str, *, stream: bool) -> tuple[bytes, type[Exception] | None, Vendor]:
    async with (
        stand_in("openai", faults=(fault,)) as (where, vendor),
        ClientSession() as session,
    ):
        try:
            answer = await post(session, where, chat(stream=stream))
        except ServerDisconnectedError as error:
            return b"", type(error), vendor
        got, ended = await read_all(answer)
        return got, ended, vendor


def text_of(got: bytes) -> str:
    said = ""
    for chunk in sse(got):
        if chunk != "[DONE]":
            said += "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
    return said


STREAMS: list[tuple[str, str, type[Exception] | None, int]] = [
    ("cut:after=0", "", ServerDisconnectedError, 0),
    ("cut:after=3", "You said:", ClientPayloadError, 2),
    ("no-end", TEXT, None, 4),
    ("pause:after=2,seconds=0.01", TEXT, None, 4),
    ("drip:bytes=400,seconds=0", TEXT, None, 4),
    ("delay:seconds=0.01", TEXT, None, 4),
    ("length:by=100", TEXT, ClientPayloadError, 4),
]


@pytest.mark.parametrize(("fault", "said", "ended", "billed"), STREAMS)
async def test_a_stream_breaks_as_it_is_told_and_is_billed_as_far_as_it_came(
    fault: str, said: str, ended: type[Exception] | None, billed: int
) -> None:
    got, error, vendor = await broken(fault, stream=True)
    assert (text_of(got), error) == (said, ended)
    [row] = vendor.bill.told()["rows"]
    assert (row["answer_tokens"], row["cut"]) == (billed, int(fault.startswith(("cut", "no-end"))))
    done = got.endswith(b"data: [DONE]\n\n")
    assert done == ((ended is None and fault != "no-end") or fault.startswith("length"))


async def test_garbage_and_errors_come_inside_the_stream() -> None:
    got, error, _ = await broken("garbage:after=2", stream=True)
    assert error is None
    assert got.count(b"data: ") == 3
    assert b"\x00\xfe\xff" in got
    got, error, _ = await broken("error:after=2,reason=server", stream=True)
    assert error is None
    assert sse(got)[-1]["error"]["type"] == "server_error"


WHOLES: list[tuple[str, type[Exception] | None]] = [
    ("cut:after=0", ServerDisconnectedError),
    ("cut:after=1", ClientPayloadError),
    ("length:by=7", ClientPayloadError),
    ("length:by=-7", None),
    ("garbage", None),
    ("html", None),
]


@pytest.mark.parametrize(("fault", "ended"), WHOLES)
async def test_a_body_in_one_piece_breaks_as_well(
    fault: str, ended: type[Exception] | None
) -> None:
    got, error, _ = await broken(fault, stream=False)
    assert error is ended
    if ended is None:
        with pytest.raises(ValueError, match=r"Expecting|Unterminated|decode"):
            json.loads(got)


@pytest.mark.parametrize(
    "fault", ["pause:seconds=0.01", "drip:bytes=300,seconds=0", "delay:seconds=0"]
)
async def test_a_slow_body_is_whole(fault: str) -> None:
    got, error, vendor = await broken(fault, stream=False)
    assert error is None
    assert json.loads(got)["choices"][0]["message"]["content"] == TEXT
    assert vendor.bill.told()["rows"][0]["cut"] == 0


async def ask_and_read(session: ClientSession, where: StandIn) -> None:
    await read_all(await post(session, where, chat(stream=True)))


@pytest.mark.parametrize("fault", ["hang", "stall:after=2"])
async def test_a_client_that_gives_up_is_billed_for_what_came(fault: str) -> None:
    async with (
        stand_in("openai", faults=(fault,)) as (where, vendor),
        ClientSession() as session,
    ):
        booked = asyncio.Event()
        settle = vendor.settle

        def tell(*given: Any, **more: Any) -> None:
            settle(*given, **more)
            booked.set()

        vendor.settle = tell  # type: ignore[method-assign]  # it tells when it is done
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask_and_read(session, where), 0.1)
        await asyncio.wait_for(booked.wait(), 10)
        [row] = vendor.bill.told()["rows"]
        assert (row["cut"], row["answer_tokens"]) == (1, 0 if fault == "hang" else 1)


async def test_tokens_come_at_their_pace() -> None:
    async with (
        stand_in("openai", itl_ms=20, ttft_ms=30, script="one two three four") as (where, _),
        ClientSession() as session,
    ):
        started = asyncio.get_running_loop().time()
        answer = await post(session, where, chat(stream=True))
        got, _ = await read_all(answer)
        assert text_of(got) == "one two three four"
        assert asyncio.get_running_loop().time() - started >= 0.110
        whole = await (await post(session, where, chat())).json()
        assert whole["usage"]["completion_tokens"] == 4
        assert asyncio.get_running_loop().time() - started >= 0.220


async def test_a_body_that_is_too_large_is_refused() -> None:
    async with stand_in("openai") as (where, _), ClientSession() as session:
        answer = await session.post(
            f"{where.base}/chat/completions",
            data=BytesIO(b"x" * (33 * 1024 * 1024)),
            headers=HEADERS,
        )
        assert answer.status == 413


def test_admin_routes_change_it_while_it_runs() -> None:
    with threaded_stand_in("openai") as where:
        assert where.admin("/keys") == [KEY, "AKIDVENDOR"]
        assert where.admin("/keys", {"add": ["sk-2"], "remove": [KEY]}) == ["sk-2", "AKIDVENDOR"]
        assert where.admin("/faults", {"faults": ["cut:every=2"]}, "PUT") == {
            "faults": [{"name": "cut", "after": 1, "every": 2}],
            "hits": {},
        }
        limits = {"requests_per_minute": 3, "tokens_per_minute": 0}
        assert where.admin("/limits", limits, "PUT") == {**limits, "filled": 1.0}
        assert where.admin("/bill")["micro_dollars"] == 0
        assert where.admin("/cache", method="DELETE") == {"entries": 0}
        assert where.admin("/requests?last=1") == []
        assert where.admin("/reset", {}) == {}


@pytest.mark.parametrize(
    ("method", "path", "value", "status"),
    [
        ("GET", "/nothing", None, 404),
        ("PUT", "/faults", {"faults": ["nothing"]}, 400),
        ("PUT", "/faults", {"faults": 5}, 400),
        ("GET", "/requests?last=x", None, 400),
        ("POST", "/token", None, 400),
    ],
)
async def test_an_admin_route_says_what_is_wrong(
    method: str, path: str, value: Any, status: int
) -> None:
    async with stand_in("openai") as (where, _), ClientSession() as session:
        answer = await session.request(method, f"{where.url}/_vendor{path}", json=value)
        assert answer.status == status
        assert (await answer.json())["error"]


async def test_the_admin_routes_need_no_key_and_are_not_logged() -> None:
    async with stand_in("vertex") as (where, vendor), ClientSession() as session:
        form = {"grant_type": "client_credentials", "client_id": "app", "client_secret": "s"}
        answer = await session.post(f"{where.url}/_vendor/token", data=form)
        token = (await answer.json())["access_token"]
        path = "/v1/projects/p/locations/eu/publishers/google/models/gemini-3-flash:generateContent"
        body = {"contents": [{"parts": [{"text": "hello"}]}]}
        heads = {"authorization": f"Bearer {token}"}
        asked = await session.post(f"{where.url}{path}", json=body, headers=heads)
        assert asked.status == 200
        assert vendor.log.count == 1
        assert vendor.bill.told()["rows"][0]["key"] == "app"
