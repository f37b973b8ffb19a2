"""What HTTP workers say about themselves, and over a real connection what becomes of a call."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.disaggregation import Pairing
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.aiohttp_client import AiohttpTransport
from smg_node.engines.http.http_engine import HttpEngine, RelayRequest
from smg_node.engines.http.server_metadata import listed_models, load_of_metrics, load_rows
from smg_node.engines.http.transport import HttpCall
from smg_node.engines.transport.transport import StatusCode, TransportError
from support.engines.relay_bench import FakeTransport, Told, listing, told

OPTIONS = EngineOptions()


def engine(pages: dict[str, Told], model: str | None = None) -> HttpEngine:
    return HttpEngine(FakeTransport(pages=pages), OPTIONS, model=model)


async def test_a_worker_says_who_it_is() -> None:
    pages = {
        "/v1/models": listing("served", root="/models/served", max_model_len=4096, owned_by="vllm"),
        "/version": told({"version": "0.19"}),
        "/get_server_info": told({"max_running_requests": 48, "api_key": "k", "tp_size": 2}),
    }
    one = engine(pages)
    card = await one.card(1)
    assert (card.model, card.model_path, card.context) == ("served", "/models/served", 4096)
    assert (card.server_version, card.running_max) == ("0.19", 48)
    assert card.server["owned_by"] == "vllm"
    assert card.server["tp_size"] == "2"
    assert "api_key" not in card.server
    assert one.served_name == "served"


async def test_an_sglang_behind_http_says_what_it_was_started_as() -> None:
    settings = {
        "disaggregation_mode": "decode",
        "disaggregation_transfer_backend": "mooncake",
        "disaggregation_bootstrap_port": 8998,
        "dp_size": 4,
    }
    pages = {"/v1/models": listing("m"), "/get_server_info": told(settings)}
    card = await engine(pages).card(1)
    assert card.role == "decode"
    assert card.pairing == Pairing("room", "mooncake", 8998)
    assert card.ranks == 4

    card = await engine({"/v1/models": listing("m")}).card(1)
    assert (card.role, card.pairing, card.ranks) == ("regular", None, 1)


@pytest.mark.parametrize(
    ("listed", "model", "name", "served"),
    [
        (listing("a"), None, "a", "a"),
        (listing("a"), "ours", "ours", "a"),
        (listing("a", "b"), "b", "b", "b"),
        (listing(), "ours", "ours", "ours"),
        (Told(status=404), "ours", "ours", "ours"),
        (told({"data": [{"id": "base"}, {"id": "lora", "parent": "base"}]}), None, "base", "base"),
        (
            told({"data": [{"id": "base"}, {"id": "lora", "parent": "base"}]}),
            "lora",
            "lora",
            "lora",
        ),
    ],
)
async def test_which_model_it_serves_is_what_the_operator_says_or_the_only_one(
    listed: Told, model: str | None, name: str, served: str
) -> None:
    one = engine({"/v1/models": listed}, model)
    assert (await one.card(1)).model == name
    assert one.served_name == served


@pytest.mark.parametrize(
    ("listed", "model"), [(listing("a", "b"), None), (listing("a", "b"), "c"), (listing(), None)]
)
async def test_which_model_is_meant_must_be_clear(listed: Told, model: str | None) -> None:
    with pytest.raises(SmgError, match=r"add \?model=NAME") as caught:
        await engine({"/v1/models": listed}, model).card(1)
    assert caught.value.kind is ErrorKind.CONFLICT


async def test_a_server_without_a_health_page_is_well_if_it_lists_models() -> None:
    assert await engine({"/health": Told()}).serving(1)
    assert await engine({"/v1/models": listing("a")}).serving(1)


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        ({"/health": Told(status=503)}, "/health answers 503: the worker is starting, or not well"),
        ({"/health": Told(status=500)}, "/health answers 500: the worker is not well"),
        (
            {"/health": Told(status=401)},
            "/health answers 401: the worker does not let this node in; is its api_key right?",
        ),
        (
            {"/health": Told(status=302)},
            "/health answers 302: redirects are not followed; register the address that it sends to",
        ),
        (
            {"/v1/models": Told(status=403)},
            "/v1/models answers 403: the worker does not let this node in; is its api_key right?",
        ),
        ({}, "/v1/models answers 404: no server with the OpenAI API is there"),
    ],
)
async def test_what_is_seen_of_a_worker_that_is_of_no_use_is_said(
    pages: dict[str, Told], words: str
) -> None:
    with pytest.raises(SmgError) as caught:
        await engine(pages).serving(1)
    assert (caught.value.message, caught.value.code) == (f"w:1: {words}", "upstream_not_serving")


@pytest.mark.parametrize(
    ("models", "model", "words"),
    [
        (
            Told(status=401),
            "ours",
            "w:1: /v1/models answers 401: the worker does not let this node",
        ),
        (Told(status=500), None, "w:1: /v1/models answers 500: the worker is not well"),
        (
            Told(status=404),
            None,
            "/v1/models answers 404: no server with the OpenAI API is there; add ?model=NAME to its URL",
        ),
        (Told((b"<html>",)), None, "it lists no model; add ?model=NAME to its URL"),
    ],
)
async def test_why_its_model_is_not_known_is_said(
    models: Told, model: str | None, words: str
) -> None:
    with pytest.raises(SmgError) as caught:
        await engine({"/health": Told(), "/v1/models": models}, model).card(1)
    assert caught.value.message.startswith(words)


async def test_loads_are_read_where_they_are() -> None:
    rows = [{"dp_rank": 0, "num_reqs": 5, "num_waiting_reqs": 2}, {"dp_rank": 1, "num_reqs": 1}]
    [first, second] = await engine({"/get_load": told(rows)}).loads(1)
    assert (first.rank, first.running, first.waiting) == (0, 3, 2)
    assert (second.rank, second.running, second.waiting) == (1, 1, 0)
    page = (
        b'# HELP x\nvllm:num_requests_running{engine="0"} 2.0\n'
        b'vllm:num_requests_running{engine="1"} 1.0\nvllm:num_requests_waiting 4\n'
        b"vllm:kv_cache_usage_perc 0.25\n"
    )
    [load] = await engine({"/metrics": Told((page,))}).loads(1)
    assert (load.running, load.waiting, load.kv_usage) == (3, 4, 0.25)
    with pytest.raises(SmgError) as caught:
        await engine({"/metrics": Told((b"other 1\n",))}).loads(1)
    assert caught.value.status == 501
    # One that fails just now is asked again.
    with pytest.raises(SmgError) as caught:
        await engine({"/metrics": Told(status=503)}).loads(1)
    assert caught.value.status == 502


@pytest.mark.parametrize(
    "page", [b"", b"[]", b"{", b'[{"num_reqs":-1}]', b'[{"num_reqs":true}]', b'{"load":1}']
)
def test_absurd_loads_are_none(page: bytes) -> None:
    assert load_rows(page) == ()
    assert load_of_metrics(page) is None


def test_absurd_metrics_and_listings_are_none() -> None:
    assert load_of_metrics(b"vllm:num_requests_running NaN\n") is None
    assert load_of_metrics(b"vllm:num_requests_running 1e99\n") is None
    assert load_of_metrics(b"vllm:num_requests_waiting 3\n") is None
    assert listed_models(b'{"data":[{"id":""},{"id":5},7]}') == ()


async def test_what_it_cannot_do_is_said_so() -> None:
    one = engine({})
    for asked in (one.tokenizer(1), one.embed(None), one.prefill(None), anext(one.kv_events(0))):  # type: ignore[arg-type]  # never looked at
        with pytest.raises(SmgError) as caught:
            await asked
        assert caught.value.status == 501


# ── Over a real connection ───────────────────────────────────────────────────

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@asynccontextmanager
async def served(answer: bytes, *, then: str = "close") -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that reads a head and says `answer`; then it closes, resets, or hangs."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        if then == "reset":
            writer.transport.abort()
        elif then == "hang":
            heads.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


async def read(transport: AiohttpTransport, call: HttpCall) -> bytes:
    answer = await transport.send(call)
    try:
        body = b""
        while piece := await answer.read():
            body += piece
        return body
    finally:
        answer.close()


async def test_a_call_says_no_more_than_it_was_given() -> None:
    async with served(OK + b"content-length: 2\r\n\r\nhi") as (base, heads):
        transport = AiohttpTransport(base, connect_s=1)
        assert await read(transport, HttpCall("GET", "/a%2Fb?c=d", {"x-a": "b"})) == b"hi"
        await transport.close()
        head = heads[0].decode().lower()
        assert head.startswith("get /a%2fb?c=d http/1.1\r\n")
        names = {line.partition(":")[0] for line in head.splitlines()[1:] if line}
        assert names == {"host", "x-a"}
        with pytest.raises(TransportError):
            await transport.send(HttpCall("GET", "/"))


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        (b"", "close"),
        (b"", "reset"),
        (b"nonsense\r\n\r\n", "close"),
        (OK + b"content-length: 9\r\n\r\nhi", "close"),
        (OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n", "close"),
        (OK + b"transfer-encoding: chunked\r\n\r\nzz\r\nhi\r\n", "close"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", "close"),
    ],
)
async def test_whatever_breaks_a_call_is_one_error(answer: bytes, then: str) -> None:
    async with served(answer, then=then) as (base, _):
        transport = AiohttpTransport(base, connect_s=1)
        with pytest.raises(TransportError) as caught:
            await read(transport, HttpCall("GET", "/"))
        assert caught.value.status is StatusCode.UNAVAILABLE
        await transport.close()


async def test_a_redirect_is_not_followed() -> None:
    away = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    async with served(away) as (base, heads):
        transport = AiohttpTransport(base, connect_s=1)
        answer = await transport.send(HttpCall("GET", "/"))
        answer.close()
        assert (answer.status, len(heads)) == (302, 1)
        await transport.close()


async def test_nobody_there_is_told_apart_from_somebody_lost() -> None:
    async with served(b"") as (base, _):
        pass
    one = HttpEngine(AiohttpTransport(base, connect_s=1), OPTIONS)
    with pytest.raises(SmgError) as caught:
        await one.relay(RelayRequest("/v1/completions", b"{}", False, 5))
    cause = caught.value.__cause__
    assert isinstance(cause, TransportError)
    assert "failed to connect" in cause.message
    assert caught.value.code == "upstream_unavailable"
    await one.close()
    with pytest.raises(SmgError) as caught:
        await one.relay(RelayRequest("/v1/completions", b"{}", False, 5))
    assert caught.value.code == "worker_removed"


async def seen(base: str, *, connect_s: float = 1) -> str:
    one = HttpEngine(AiohttpTransport(base, connect_s=connect_s), OPTIONS)
    try:
        with pytest.raises(SmgError) as caught:
            await one.serving(0.3)
        return caught.value.message.removeprefix(f"{one.target}: ")
    finally:
        await one.close()


async def test_why_nobody_can_be_reached_is_said_in_words() -> None:
    async with served(b"") as (base, _):
        assert await seen(base) == "connection lost: ServerDisconnectedError"
    assert await seen(base) == "failed to connect: connection refused"
    async with served(b"", then="hang") as (base, _):
        assert await seen(base) == "/health was not answered within 0.3 s"
    async with served(b"PRI * HTTP/2.0\r\n\r\n") as (base, _):
        assert await seen(base) == "connection lost: the answer is no HTTP/1.1"
    assert await seen("http://name.invalid:1") == "failed to connect: its name cannot be resolved"


async def test_silence_after_the_head_cuts_the_connection() -> None:
    head = OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n"
    async with served(head, then="hang") as (base, heads):
        options = EngineOptions(stall_s=0.05)
        one = HttpEngine(AiohttpTransport(base, connect_s=1), options)
        stream = await one.relay(RelayRequest("/v1/completions", b"{}", True, 5))
        assert await stream.read() == b"hi"
        with pytest.raises(SmgError) as caught:
            await stream.read()
        assert caught.value.code == "upstream_stalled"
        stream.close()
        async with asyncio.timeout(5):
            while len(heads) < 2:  # noqa: ASYNC110 - the server noticed that the connection closed
                await asyncio.sleep(0.005)
        await one.close()
