"""Heads that connections begin with: read once, found out about once, and only what does not hang on a connection."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.http.message.body_stream import ArrivedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.authorization import Guard
from smg_node.http.server import connections
from smg_node.http.server.head_cache import CommonHeads
from smg_node.http.server.request_parser import RequestReader
from support.http.history_routes import Here
from support.http.http_node import Node, chat, node
from support.http.raw_http import Response, ask

CHAT = "/v1/chat/completions"
KEYS = "/v1/cluster/keys"


class Line:
    """As much of a connection as a reader looks at."""

    def __init__(self, certificate: object = None) -> None:
        self.certificate = certificate

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


def post(body: bytes, *lines: bytes, name: bytes = b"Content-Length") -> bytes:
    head = (b"POST /a?b=c HTTP/1.1", b"Host: x", *lines, b"%b: %d" % (name, len(body)))
    return b"\r\n".join(head) + b"\r\nX-Last: z\r\n\r\n" + body


def read(
    packets: list[bytes], common: CommonHeads | None, certificate: object = None
) -> tuple[list[Any], str, list[bool]]:
    """Return the requests of one connection, what was wrong, and which were read by a known head."""
    found: list[HttpRequest] = []
    line = cast("Any", Line(certificate))
    reader = RequestReader(
        line, line, found.append, line_max_bytes=5000, headers_max=8, common=common
    )
    error = ""
    try:
        for packet in packets:
            reader.feed(packet)
    except SmgError as wrong:
        error = wrong.code
    reader.close()
    shapes = [
        (
            *(one.method, one.head.target, dict(one.headers), list(one.head.raw)),
            *(one.head.http11, one.head.keep_alive, one.path, dict(one.query)),
            one.body.take() if one.body.whole else None,
        )
        for one in found
    ]
    return shapes, error, [type(one.body) is ArrivedBody for one in found]


def test_the_first_request_of_a_connection_is_known_by_that_of_another() -> None:
    common = CommonHeads()
    first = read([post(b"{}")], common)
    second = read([post(b"longer"), post(b"{}")], common)
    assert (first[2], second[2]) == ([False], [True, True])
    assert second[:2] == read([post(b"longer"), post(b"{}")], None)[:2]


WORDS = (
    b"Authorization: Bearer a",
    b"Authorization: Bearer b",
    b"connection: close",
    b"X-Content-Length: 2",
)
REQUESTS = st.builds(
    post,
    st.sampled_from([b"", b"{}", b"0123456789", b"\r\n\r\n", b"\r\nContent-Length: 3\r\n"]),
    st.sampled_from(WORDS),
    name=st.sampled_from([b"Content-Length", b"content-length", b"CONTENT-LENGTH"]),
)
ODD = st.sampled_from(
    [
        post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 2\r\nContent-Length: 2"),
        post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 3"),
        post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 1"),
        post(b"{}").replace(b"Content-Length: 2", b"Content-Length: 02"),
        post(b"{}").replace(b"Content-Length: 2", b"Content-Length:2"),
        post(b"{}").replace(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"\r\n",
        post(b"{}").replace(b"Host: x", b"Host: x\r\nHost: y"),
        post(b"{}") + b"GET / HTTP/1.1\r\n",
        post(b"{}") * 2,
        b"\r\n" + post(b"{}"),
        post(b"{}")[:-1],
        b"\r\n\r\n",
    ]
)  # fmt: skip


@given(st.lists(st.lists(REQUESTS | ODD | st.binary(max_size=6), max_size=3), max_size=6))
def test_whatever_connections_have_in_common_each_reads_what_it_would_alone(
    connections: list[list[bytes]],
) -> None:
    common = CommonHeads()
    for packets in connections * 2:
        assert read(packets, common)[:2] == read(packets, None)[:2]


def test_who_shows_a_certificate_neither_gives_nor_takes() -> None:
    common = CommonHeads()
    assert read([post(b"{}")], common, "of somebody")[2] == [False]
    assert len(common) == 0
    read([post(b"{}")], common)
    assert read([post(b"{}"), post(b"{}")], common, "of somebody")[2] == [False, True]


def test_heads_in_common_are_bounded_and_the_latest_stay() -> None:
    common = CommonHeads()
    for number in range(200):
        read([post(b"{}", b"X-Number: %d" % number)], common)
        assert read([post(b"{}", b"X-Number: 0")], common)[2] == [True]
    assert len(common) == 64
    assert read([post(b"{}", b"X-Number: 199")], common)[2] == [True]
    read([post(b"{}", b"X-Large: " + b"x" * 4096)], common)
    assert read([post(b"{}", b"X-Large: " + b"x" * 4096)], common)[2] == [False]


def test_heads_that_nobody_begins_with_are_forgotten() -> None:
    common = CommonHeads()
    read([post(b"{}", b"X-Number: 1")], common)
    read([post(b"{}", b"X-Number: 2")], common)
    common.age()
    assert len(common) == 2, "both came since the last time"
    read([post(b"ab", b"X-Number: 2")], common)
    common.age()
    assert len(common) == 1
    common.age()
    assert len(common) == 0


# ── With a node around it ────────────────────────────────────────────────────


@asynccontextmanager
async def closed() -> AsyncIterator[tuple[Node, str]]:
    async with node(history=Here(), server="direct") as served:
        made = await ask(served.port, "POST", KEYS, {"role": "admin"})
        yield served, made.json()["key"]


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def made(served: Node, admin: str, **wish: Any) -> dict[str, Any]:
    answer = await ask(served.port, "POST", KEYS, {"tenant": "acme", **wish}, bearer(admin))
    assert answer.status == 201, answer.body
    return dict(answer.json())


async def chats(served: Node, key: str, count: int) -> list[int]:
    """Chat so often, each time by a connection of its own."""
    answers: list[Response] = [
        await ask(served.port, "POST", CHAT, chat(), bearer(key)) for _ in range(count)
    ]
    return [answer.status for answer in answers]


FROM_TWO = ("127.0.0.1", "127.0.0.2") * 2


async def statuses_from(
    served: Node, sources: Sequence[str], headers: Mapping[str, str]
) -> list[bytes]:
    """Chat once from each address, by a connection of its own, with the same head to the byte."""
    body = json.dumps(chat()).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {CHAT} HTTP/1.1\r\nhost: a\r\n{lines}content-length: {len(body)}\r\n\r\n"
    statuses = []
    for source in sources:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", served.port, local_addr=(source, 0)
        )
        writer.write(head.encode() + body)
        statuses.append((await reader.readline()).split()[1])
        writer.close()
    return statuses


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of requests whose callers had to be found."""
    found: list[str] = []
    admit = Guard.admit

    def noting(self: Guard, request: HttpRequest, *arguments: Any) -> Any:
        found.append(request.path)
        return admit(self, request, *arguments)

    monkeypatch.setattr(Guard, "admit", noting)
    return found


async def test_a_caller_is_found_once_for_all_connections_with_his_head(
    admitted: list[str],
) -> None:
    async with closed() as (served, admin):
        key, other = [(await made(served, admin))["key"] for _ in range(2)]
        admitted.clear()
        assert await chats(served, key, 5) == [200] * 5
        assert await chats(served, other, 5) == [200] * 5
        assert admitted == [CHAT] * 2


async def test_a_key_that_is_revoked_is_refused_on_new_connections_as_well(
    admitted: list[str],
) -> None:
    async with closed() as (served, admin):
        key = await made(served, admin)
        assert await chats(served, key["key"], 3) == [200] * 3
        gone = await ask(served.port, "DELETE", f"{KEYS}/{key['id']}", b"", bearer(admin))
        assert gone.status < 300, gone.body
        assert await chats(served, key["key"], 3) == [401] * 3


async def test_where_a_caller_comes_from_is_looked_at_on_each_connection() -> None:
    async with closed() as (served, admin):
        key = (await made(served, admin, networks=["127.0.0.1/32"]))["key"]
        assert await chats(served, key, 3) == [200] * 3
        assert await statuses_from(served, FROM_TWO, bearer(key)) == [b"200", b"403"] * 2


async def test_who_is_no_believed_proxy_is_not_taken_for_one_whose_head_he_sends() -> None:
    believed = ("127.0.0.1/32",)
    async with node(server="direct", trusted_proxies=believed) as served:
        by = {"x-smg-tenant-id": "acme"}
        assert await statuses_from(served, FROM_TWO * 2, by) == [b"200"] * 8
        tenants = [run.context.tenant for run in served.generations.runs]
    assert tenants == ["acme", ""] * 4


async def test_heads_are_forgotten_soon_after_the_last_connection_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[CommonHeads] = []

    class Noted(CommonHeads):
        def __init__(self) -> None:
            super().__init__()
            kept.append(self)

    monkeypatch.setattr(connections, "CommonHeads", Noted)
    async with node(server="direct", idle_keepalive_s=0.1, header_read_s=0.1) as served:
        assert await chats(served, "any", 2) == [200] * 2
        async with asyncio.timeout(30):
            while any(len(one) for one in kept):  # noqa: ASYNC110  nobody is told of it
                await asyncio.sleep(0.01)


def test_a_head_of_one_length_is_the_same_of_another() -> None:
    common = CommonHeads()
    read([post(b"1")], common)
    assert [read([post(b"x" * size)], common)[2] for size in (0, 9, 10, 4000)] == [[True]] * 4
