"""Upgrades to WebSocket: what is accepted, what is refused and how, and where keys go."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from smg_node.access.certificates import CertificateRule
from smg_node.http.message.request_head import Head
from smg_node.http.sockets.handshake import accept_key
from smg_node.http.sockets.offered_key import keyed, offered_protocols
from support.history.no_history import no_history
from support.http.http_node import node
from support.http.raw_http import RawClient, Response, ask, connect
from support.http.socket_client import PATH, heard, say, socket

pytestmark = pytest.mark.usefixtures("either_server")

KEYS = "/v1/cluster/keys"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
GOOD = {
    "connection": "keep-alive, Upgrade",
    "upgrade": "WebSocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": KEY,
    # As an official client sends it, although no body follows.
    "content-type": "application/json",
}


async def answered(port: int, headers: Mapping[str, str], path: str = PATH) -> Response:
    async with connect(port) as client:
        await client.send("GET", path, headers=headers)
        return await client.response()


def test_the_answer_to_a_key_is_that_of_the_standard() -> None:
    assert accept_key(KEY) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


async def test_an_upgrade_is_accepted_and_frames_may_follow_at_once() -> None:
    async with node() as served, connect(served.port) as client:
        # Masked with zeros, and cut in two.
        await client.send("GET", PATH, b"\x89\x82\0\0", GOOD | {"content-length": "-"})
        status, headers = await client.head()
        assert status == 101
        assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        assert (headers["upgrade"], headers["connection"]) == ("websocket", "Upgrade")
        assert "sec-websocket-protocol" not in headers
        assert "content-length" not in headers
        client.writer.write(b"\0\0hi\x88\x80\0\0\0\0")
        assert await client.reader.readexactly(4) == b"\x8a\x02hi"
        assert await client.reader.readexactly(4) == b"\x88\x02\x03\xe8"
        assert await client.at_end()


async def test_what_asks_for_no_upgrade_is_told_to() -> None:
    async with node() as served:
        answer = await ask(served.port, "GET", PATH)
        assert (answer.status, answer.headers["upgrade"]) == (426, "websocket")
        assert answer.error()["code"] == "websocket_upgrade_required"
        async with connect(served.port) as client:
            # The connection is good for more.
            for _ in range(2):
                await client.send("GET", PATH)
                assert (await client.response()).status == 426


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"sec-websocket-version": "8"}, 426, "websocket_upgrade_required"),
        ({"sec-websocket-version": "-"}, 426, "websocket_upgrade_required"),
        ({"sec-websocket-key": "-"}, 400, "invalid_handshake"),
        ({"sec-websocket-key": "c2hvcnQ="}, 400, "invalid_handshake"),
        ({"sec-websocket-key": "!" * 24}, 400, "invalid_handshake"),
        ({"connection": "keep-alive"}, 426, "websocket_upgrade_required"),
        ({"upgrade": "h2c"}, 426, "websocket_upgrade_required"),
        # A body, whose end nobody behind the upgrade would look for.
        ({"content-length": "0"}, 400, "invalid_handshake"),
        ({"transfer-encoding": "chunked"}, 400, "invalid_handshake"),
        # No-break spaces: parsers of requests take none of them for an offer.
        ({"upgrade": "websocket\xc2\xa0"}, 426, "websocket_upgrade_required"),
        ({"connection": "upgrade\xc2\xa0"}, 426, "websocket_upgrade_required"),
    ],
)
async def test_what_asks_wrongly_is_told_what_is_wrong(
    change: dict[str, str], status: int, code: str
) -> None:
    async with node() as served:
        answer = await answered(served.port, GOOD | change)
        assert (answer.status, answer.error()["code"]) == (status, code)
        if "sec-websocket-version" in change:
            assert answer.headers["sec-websocket-version"] == "13"


async def test_a_request_hidden_behind_an_upgrade_with_a_body_is_no_frame(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hidden = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"
    framed = {"content-length": str(len(hidden)), "connection": "close, Upgrade"}
    async with node() as served, connect(served.port) as client:
        await client.send("GET", PATH, hidden, GOOD | framed)
        answer = await client.response()
        assert (answer.status, answer.error()["code"]) == (400, "invalid_handshake")
        assert await client.at_end()
    assert "mistake of ours" not in caplog.text


async def test_a_route_without_a_socket_says_so() -> None:
    async with node() as served:
        answer = await answered(served.port, GOOD, "/v1/models")
        assert (answer.status, answer.error()["code"]) == (400, "no_websocket_here")
        answer = await answered(served.port, GOOD, "/v1/nothing")
        assert (answer.status, answer.error()["code"]) == (404, "unknown_url")
        answer = await answered(served.port, GOOD, "/v1/chat/completions")
        assert answer.status == 405


async def test_a_page_of_another_origin_needs_a_key_or_leave() -> None:
    page = {"origin": "https://page.example"}
    async with node() as served:
        answer = await answered(served.port, GOOD | page)
        assert (answer.status, answer.error()["code"]) == (403, "origin_not_allowed")
    async with node(cors_allowed_origins=("https://page.example",)) as served:
        async with socket(served.port, origin="https://page.example"):
            pass
        other = await answered(served.port, GOOD | {"origin": "https://other.example"})
        assert other.status == 403


async def test_a_certificate_is_no_key_of_a_page() -> None:
    # A browser shows it for whatever page asks.
    page, shown = "https://page.example", {"x-forwarded-client-cert": "URI=spiffe://prod/web"}
    rules: Any = {
        "certificates": (CertificateRule("spiffe://prod/web", "user", "acme"),),
        "trusted_proxies": ("127.0.0.0/8",),
    }
    async with node(**rules) as served:
        answer = await answered(served.port, GOOD | shown | {"origin": page})
        assert (answer.status, answer.error()["code"]) == (403, "origin_not_allowed")
        async with socket(served.port, additional_headers=shown):
            pass
    open_to = node(cors_allowed_origins=(page,), **rules)
    async with open_to as served, socket(served.port, additional_headers=shown, origin=page):
        pass


async def test_a_browser_brings_its_key_as_a_protocol_and_it_is_told_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with node() as served:
        admin = (await ask(served.port, "POST", KEYS, {"role": "admin"})).json()["key"]
        bearer = {"authorization": f"Bearer {admin}"}
        key = (await ask(served.port, "POST", KEYS, {"tenant": "acme"}, bearer)).json()["key"]
        offers = ["realtime", f"openai-insecure-api-key.{key}", "openai-agents-sdk.0.20.0"]
        async with socket(
            served.port, subprotocols=offers, origin="https://page.example"
        ) as client:
            assert client.subprotocol == "realtime"
            assert key not in str(client.response)
            await say(client, type="nonsense")
            assert (await heard(client))["type"] == "error"
        for wrong in (["realtime", "openai-insecure-api-key.smg-nonsense"], ["realtime"]):
            with pytest.raises(InvalidStatus) as refused:
                async with socket(served.port, subprotocols=wrong):
                    pass
            assert refused.value.response.status_code == 401
            code = refused.value.response.headers["x-smg-error-code"]
            assert code == "invalid_api_key"
    ours = [record for record in caplog.records if record.name.startswith("smg_node")]
    assert not any(key in record.getMessage() for record in ours)
    assert not any(key in str(line) for line in served.access.lines)


def test_a_key_in_a_header_counts_before_an_offered_one() -> None:
    raw = [
        (b"X-Api-Key", b"header"),
        (b"Sec-WebSocket-Protocol", b"realtime, openai-insecure-api-key.offered"),
        (b"sec-websocket-protocol", b" other "),
    ]
    headers = {"x-api-key": "header", "sec-websocket-protocol": "realtime, openai-insecure-…"}
    head = Head("GET", "/a", headers, raw, http11=True, keep_alive=True)
    changed = keyed(head)
    assert offered_protocols(changed) == ["realtime", "other"]
    assert changed.headers == {"x-api-key": "header", "sec-websocket-protocol": "realtime, other"}
    assert "offered" not in str(changed.raw)
    assert keyed(changed) is changed


async def test_many_bytes_behind_a_handshake_that_is_refused_do_no_harm() -> None:
    async with node(history=no_history) as served, connect(served.port) as client:
        await refused_with(client, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 4)


async def refused_with(client: RawClient, behind: bytes) -> None:
    """What follows the offer of another protocol is never taken for a request."""
    await client.send("GET", "/v1/nothing", behind, GOOD | {"content-length": "-"})
    assert (await client.response()).status == 404
    assert await client.at_end()
