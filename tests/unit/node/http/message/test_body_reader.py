import asyncio
import gzip
import json
import zlib

import pytest

from support.http.http_node import chat, node
from support.http.raw_http import RawClient, Response, ask, connect, until

pytestmark = pytest.mark.usefixtures("either_server")

CHAT = "/v1/chat/completions"
GOOD = json.dumps(chat()).encode()


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


async def chunked(client: RawClient, *parts: bytes, headers: dict[str, str] | None = None) -> None:
    await client.send(
        "POST",
        CHAT,
        b"",
        {"transfer-encoding": "chunked", "content-length": "-", **(headers or {})},
    )
    for part in parts:
        client.writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        await client.writer.drain()


async def test_a_body_that_says_it_is_too_large_is_refused_unread() -> None:
    async with node(body_max_bytes=1000) as served, connect(served.port) as client:
        await client.send("POST", CHAT, b"", {"content-length": "1001"})
        response = await client.response()
    assert response.status == 413
    assert response.error()["code"] == "request_too_large"
    assert response.headers["connection"] == "close"


async def test_a_body_of_exactly_the_limit_is_read() -> None:
    body = GOOD + b" " * (1000 - len(GOOD))
    async with node(body_max_bytes=1000) as served:
        assert (await ask(served.port, "POST", CHAT, body)).status == 200


async def test_a_body_in_chunks_is_cut_at_the_first_byte_too_many() -> None:
    async with node(body_max_bytes=1000) as served, connect(served.port) as client:
        await chunked(client, b" " * 600, b" " * 600)
        # The body has not ended, and the answer comes all the same.
        response = await client.response()
    assert (response.status, response.error()["code"]) == (413, "request_too_large")
    assert response.headers["connection"] == "close"


async def test_a_body_in_chunks_is_read_however_it_is_cut() -> None:
    async with node() as served, connect(served.port) as client:
        await chunked(client, *(GOOD[i : i + 1] for i in range(len(GOOD))))
        client.writer.write(b"0\r\n\r\n")
        assert (await client.response()).status == 200
        # The connection is still good.
        await client.send("POST", CHAT, GOOD)
        assert (await client.response()).status == 200


async def test_a_body_that_comes_in_two_packets_is_whole() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("POST", CHAT, GOOD[:9], {"content-length": str(len(GOOD))})
        await asyncio.sleep(0.01)
        client.writer.write(GOOD[9:])
        assert (await client.response()).status == 200


async def test_chunks_that_are_none_are_a_bad_request() -> None:
    async with node() as served, connect(served.port) as client:
        await chunked(client, b"{")
        await until(lambda: served.sample("smg_node_http_requests_inflight"))
        client.writer.write(b"zzz\r\nnonsense\r\n")
        response = await client.response()
        assert response.status == 400
        assert response.error()["code"] == "invalid_body"
        assert (await ask(served.port, "POST", CHAT, GOOD)).status == 200


async def test_a_body_that_stalls_is_a_408() -> None:
    async with node(body_stall_s=0.05) as served, connect(served.port) as client:
        await client.send("POST", CHAT, GOOD[:5], {"content-length": str(len(GOOD))})
        response = await client.response()
        assert (response.status, response.error()["code"]) == (408, "request_timeout")
        assert response.headers["connection"] == "close"
        assert await client.at_end()


async def test_a_body_that_dribbles_on_is_no_stall() -> None:
    async with node(body_stall_s=2.0) as served, connect(served.port) as client:
        await client.send("POST", CHAT, b"", {"content-length": str(len(GOOD))})
        for i in range(0, len(GOOD), 8):  # eleven pauses, together longer than one may be
            client.writer.write(GOOD[i : i + 8])
            await asyncio.sleep(0.25)
        assert (await client.response()).status == 200


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("application/vnd.api+json", 200),
        ("-", 200),
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/x-www-form-urlencoded", 415),
    ],
)
async def test_only_json_is_read(kind: str, status: int) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", CHAT, GOOD, {"content-type": kind})
    assert response.status == status
    if status == 415:
        assert response.error()["code"] == "unsupported_media_type"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(GOOD, mtime=0)),
        ("GZIP", gzip.compress(GOOD, mtime=0)),
        ("deflate", zlib.compress(GOOD)),
        ("deflate", raw_deflate(GOOD)),
        ("identity", GOOD),
    ],
    ids=["gzip", "upper case", "zlib", "raw", "plain"],
)
async def test_packed_bodies_are_unpacked(encoding: str, packed: bytes) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", CHAT, packed, {"content-encoding": encoding})
    assert response.status == 200


@pytest.mark.parametrize(
    ("encoding", "packed", "status"),
    [
        ("br", GOOD, 415),
        ("gzip, gzip", GOOD, 415),
        ("gzip", GOOD, 400),
        ("gzip", gzip.compress(GOOD, mtime=0)[:-9], 400),
        ("gzip", gzip.compress(GOOD, mtime=0) + b"more", 400),
        ("gzip", b"", 400),
        ("deflate", b"\x08\xff\x00", 400),
    ],
    ids=["unknown", "twice", "not packed", "cut", "with more", "empty", "broken"],
)
async def test_what_cannot_be_unpacked_is_refused(
    encoding: str, packed: bytes, status: int
) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", CHAT, packed, {"content-encoding": encoding})
    assert response.status == status


async def test_a_bomb_is_cut_long_before_the_limit_for_bodies() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 50_000
    async with node() as served:
        response = await ask(served.port, "POST", CHAT, bomb, {"content-encoding": "gzip"})
    assert (response.status, response.error()["code"]) == (413, "request_too_large")


async def test_a_packed_body_may_not_exceed_the_limit_unpacked() -> None:
    body = gzip.compress(GOOD + b" " * 1000)
    async with node(body_max_bytes=1000) as served:
        response = await ask(served.port, "POST", CHAT, body, {"content-encoding": "gzip"})
    assert response.status == 413


async def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send(
            "POST", CHAT, b"", {"content-length": str(len(GOOD)), "expect": "100-continue"}
        )
        status, _ = await client.head()
        assert status == 100
        client.writer.write(GOOD)
        assert (await client.response()).status == 200


async def test_a_client_that_asks_first_is_told_not_to_bother() -> None:
    async with node(body_max_bytes=10) as served, connect(served.port) as client:
        await client.send("POST", CHAT, b"", {"content-length": "11", "expect": "100-continue"})
        response = await client.response()
    assert (response.status, response.interim) == (413, [])


async def test_an_odd_expectation_is_not_met() -> None:
    async with node() as served:
        response = await ask(served.port, "POST", CHAT, GOOD, {"expect": "miracles"})
    assert response.status == 417


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"model": NaN}',
        b'{"model": "\\ud800"}',
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b"{}{}",
    ],
)
async def test_what_is_no_json_object_is_a_400(body: bytes) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", CHAT, body)
        assert not served.generations.runs
    assert (response.status, response.error()["code"]) == (400, "invalid_json")


async def test_nesting_up_to_the_configured_limit_is_fine() -> None:
    async def depth(levels: int) -> Response:
        deep = b'{"x":' * (levels - 1) + b"1" + b"}" * (levels - 1)
        body = GOOD[:-1] + b',"metadata_extra":' + deep + b"}"
        return await ask(served.port, "POST", CHAT, body)

    async with node(nesting_max=10) as served:
        assert (await depth(10)).status == 200
        assert (await depth(11)).error()["code"] == "invalid_json"


async def test_a_refused_get_with_a_body_does_not_confuse_what_follows() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("GET", "/health", b"x" * 10, {"content-length": "10"})
        assert (await client.response()).status == 200
        await client.send("GET", "/health")
        assert (await client.response()).status == 200
