"""Headers that browsers and caches in between are to heed, on answers of every kind."""

import json

import pytest

from smg_node.http.server import connections
from smg_node.http.tls_options import TlsOptions
from support.http import http_node, raw_http
from support.http.http_node import chat, node
from support.http.raw_http import ask, connect
from support.http.served_tls import localhost

NOSNIFF, STRICT = "x-content-type-options", "strict-transport-security"
KINDS = [
    ("POST", "/v1/chat/completions", json.dumps(chat()).encode(), 200, ""),
    (
        "POST",
        "/v1/chat/completions",
        json.dumps(chat(stream=True)).encode(),
        200,
        "no-cache, no-transform",
    ),
    ("POST", "/v1/chat/completions", b"{", 400, ""),
    ("GET", "/v1/models", b"", 200, ""),
    ("GET", "/liveness", b"", 200, ""),
    ("GET", "/nothing", b"", 404, ""),
    ("OPTIONS", "/v1/models", b"", 204, ""),
    ("HEAD", "/workers", b"", 200, "no-store"),
    ("GET", "/workers", b"", 200, "no-store"),
    ("GET", "/workers/none", b"", 404, "no-store"),
    ("GET", "/metrics", b"", 200, "no-store"),
    ("POST", "/workers", b"{", 400, "no-store"),
]


@pytest.mark.parametrize("server", ["direct", "aiohttp"])
@pytest.mark.parametrize(("method", "path", "body", "status", "cached"), KINDS)
async def test_no_answer_is_taken_for_another_type_and_none_to_operators_is_kept(
    server: str, method: str, path: str, body: bytes, status: int, cached: str
) -> None:
    async with node(server=server) as served:
        answer = await ask(served.port, method, path, body)
    assert (answer.status, answer.headers[NOSNIFF]) == (status, "nosniff")
    assert answer.headers.get("cache-control", "") == cached
    assert STRICT not in answer.headers


async def test_a_refused_operator_and_bytes_that_are_no_request_have_them_too() -> None:
    async with node() as served:
        await ask(served.port, "POST", "/v1/cluster/keys", {"role": "admin", "tenant": "o"})
        refused = await ask(served.port, "GET", "/workers")
        assert (refused.status, refused.headers["cache-control"]) == (401, "no-store")
        assert refused.headers["www-authenticate"] == "Bearer"
        async with connect(served.port) as client:
            client.writer.write(b"nonsense\r\n\r\n")
            answer = await client.response()
        assert (answer.status, answer.headers[NOSNIFF]) == (400, "nosniff")
    assert b"\r\nx-content-type-options: nosniff\r\n" in connections.FULL


async def test_watched_events_of_operators_are_not_kept_either() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("GET", "/v1/cluster/events?stream=true")
        status, headers = await client.head()
    assert (status, headers["cache-control"], headers[NOSNIFF]) == (200, "no-store", "nosniff")


@pytest.mark.parametrize("hsts_s", [0, 31_536_000])
async def test_browsers_are_told_to_stay_with_https_only_over_it_and_if_that_is_set(
    monkeypatch: pytest.MonkeyPatch, hsts_s: int
) -> None:
    options, context = localhost()
    monkeypatch.setattr(http_node, "TLS", TlsOptions(options.pair, hsts_s=hsts_s))
    monkeypatch.setattr(raw_http, "TLS", context)
    async with node(metrics_tls=False) as served:
        for method, path, body, status, _ in KINDS:
            answer = await ask(served.port, method, path, body)
            assert answer.status == status
            said = f"max-age={hsts_s}" if hsts_s else ""
            assert answer.headers.get(STRICT, "") == said, path
        plain = served.server.metrics_address
        assert plain is not None
        monkeypatch.setattr(raw_http, "TLS", None)
        assert STRICT not in (await ask(plain.port, "GET", "/metrics")).headers
