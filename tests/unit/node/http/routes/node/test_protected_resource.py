"""What clients are told of the issuers whose tokens are good here."""

import pytest

from smg_node.http.forwarding.control_proxy import Forwarding
from support.http import http_node, raw_http
from support.http.http_node import node
from support.http.raw_http import ask
from support.http.served_tls import localhost

KNOWN = "/.well-known/oauth-protected-resource"
ISSUERS = ("https://sso.example/realms/prod", "https://other.example")
HERE = {"host": "chat.example"}


@pytest.mark.parametrize("path", [KNOWN, f"{KNOWN}/mcp"])
async def test_without_an_issuer_there_is_nothing(path: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "GET", path)
        assert (answer.status, answer.error()["code"]) == (404, "unknown_url")


@pytest.mark.parametrize(
    ("path", "below"),
    [("", ""), ("/mcp", "/mcp"), ("/mcp/docs", "/mcp/docs"), ("/a%20%22b", "/a%20%22b")],
)
async def test_issuers_are_listed_for_the_url_that_was_asked_about(path: str, below: str) -> None:
    async with node() as served:
        served.parts.issuers = lambda: ISSUERS
        answer = await ask(served.port, "GET", KNOWN + path, b"", {"host": "chat.example:8443"})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == {
        "resource": f"http://chat.example:8443{below}",
        "authorization_servers": list(ISSUERS),
        "bearer_methods_supported": ["header"],
    }


async def test_no_key_is_needed_where_all_else_needs_one() -> None:
    async with node(data_access="closed") as served:
        served.parts.issuers = lambda: ISSUERS
        assert (await ask(served.port, "GET", "/v1/models")).status == 401
        assert (await ask(served.port, "GET", KNOWN, b"", HERE)).status == 200


@pytest.mark.parametrize("host", ["a b", "a/b", "a@b", "\u00e4", "[::1", "x" * 300])
async def test_a_host_that_is_none_is_not_repeated(host: str) -> None:
    async with node() as served:
        served.parts.issuers = lambda: ISSUERS
        answer = await ask(served.port, "GET", KNOWN, b"", {"host": host})
    assert answer.status == 400


@pytest.mark.parametrize("believed", [True, False])
async def test_a_believed_proxy_says_whether_the_client_came_by_https(believed: bool) -> None:
    networks = ("127.0.0.1/32",) if believed else ("192.0.2.0/24",)
    async with node(trusted_proxies=networks) as served:
        served.parts.issuers = lambda: ISSUERS
        sent = {**HERE, "x-forwarded-proto": "https"}
        answer = await ask(served.port, "GET", KNOWN, b"", sent)
    assert answer.json()["resource"] == f"http{'s' * believed}://chat.example"


async def test_over_tls_it_is_https(monkeypatch: pytest.MonkeyPatch) -> None:
    options, context = localhost()
    monkeypatch.setattr(http_node, "TLS", options)
    monkeypatch.setattr(raw_http, "TLS", context)
    async with node() as served:
        served.parts.issuers = lambda: ISSUERS
        answer = await ask(served.port, "GET", KNOWN, b"", HERE)
    assert answer.json()["resource"] == "https://chat.example"


async def test_data_processes_answer_it_themselves() -> None:
    forwarding = Forwarding("/nowhere", lambda: False)
    async with node(elsewhere=forwarding) as served:
        served.parts.issuers = lambda: ISSUERS
        assert (await ask(served.port, "GET", KNOWN, b"", HERE)).status == 200
