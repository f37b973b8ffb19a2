"""Proxies in front of a node: which are believed, and that nobody else says whom a request comes from."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from smg_node.access.certificates import CertificateRule
from smg_node.http.forwarding.control_proxy import TENANT, Forwarding, Trusting
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.route_table import Found
from support.http.http_node import Node, chat, hello, node
from support.http.raw_http import RawClient, ask, connect

RULES = (
    CertificateRule("spiffe://prod/ops", "admin", "ops"),
    CertificateRule("spiffe://prod/ns/*/sa/web", "user", "{1}"),
)
HERE = ("127.0.0.0/8",)
ELSEWHERE = ("192.0.2.0/24",)
WEB = {"x-forwarded-client-cert": "URI=spiffe://prod/ns/a/sa/web"}
OPS = {"x-forwarded-client-cert": f'By=x;Hash=y, Subject="CN=z";URI={RULES[0].match}'}
FROM = {"x-forwarded-for": "198.51.100.9, 203.0.113.7"}
BY = {"x-smg-tenant-id": "acme"}


async def said(client: RawClient, headers: Mapping[str, str]) -> int:
    await client.send("POST", "/v1/chat/completions", json.dumps(chat()).encode(), headers)
    return (await client.response()).status


def lines_of(served: Node) -> list[dict[str, str]]:
    return [json.loads(line) for line in served.access.lines]


@pytest.mark.parametrize("server", ["direct", "aiohttp"])
async def test_a_believed_proxy_says_whose_each_request_of_its_connection_is(server: str) -> None:
    async with node(hello, server=server, trusted_proxies=HERE, certificates=RULES) as served:
        async with connect(served.port) as client:
            assert await said(client, {**WEB, **FROM}) == 200
            other = {"x-forwarded-client-cert": "URI=spiffe://prod/ns/b/sa/web"}
            assert await said(client, {**other, "x-forwarded-for": "2001:db8::5"}) == 200
            assert await said(client, {}) == 401
            unknown = {"x-forwarded-client-cert": "URI=spiffe://prod/who"}
            assert await said(client, unknown) == 403
            garbage = {"x-forwarded-client-cert": 'URI="spiffe://prod/ops'}
            assert await said(client, garbage) == 401
            await client.send("GET", "/workers", headers=OPS)
            assert (await client.response()).status == 200
            await client.send("GET", "/workers", headers=WEB)
            assert (await client.response()).status == 403
        lines = lines_of(served)
    assert [line.get("tenant", "") for line in lines[:2]] == ["a", "b"]
    assert [line["peer"] for line in lines[:3]] == ["203.0.113.7", "2001:db8::5", "127.0.0.1"]


@pytest.mark.parametrize("networks", [ELSEWHERE, ()])
async def test_nobody_else_is_believed(networks: tuple[str, ...]) -> None:
    async with node(hello, trusted_proxies=networks, certificates=RULES) as served:
        async with connect(served.port) as client:
            assert await said(client, {**WEB, **FROM, **BY}) == 401
            await client.send("GET", "/workers", headers={**OPS, **FROM})
            assert (await client.response()).status == 401
        assert {line["peer"] for line in lines_of(served)} == {"127.0.0.1"}


async def test_several_headers_of_a_name_are_one_list_and_its_end_counts() -> None:
    async with node(hello, trusted_proxies=HERE, certificates=RULES) as served:
        async with connect(served.port) as client:
            body = json.dumps(chat()).encode()
            head = (
                "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n"
                f"X-Forwarded-Client-Cert: URI={RULES[0].match}\r\n"
                "x-forwarded-client-cert: URI=spiffe://prod/ns/b/sa/web\r\n"
                "x-forwarded-for: 198.51.100.1\r\nX-Forwarded-For: 203.0.113.9\r\n"
                f"content-length: {len(body)}\r\n\r\n"
            )
            client.writer.write(head.encode() + body)
            assert (await client.response()).status == 200
        (line,) = lines_of(served)
    assert (line["tenant"], line["peer"]) == ("b", "203.0.113.9")


async def test_a_header_of_certificates_from_elsewhere_reaches_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what this process forwards, nor what it answers itself, has it."""
    path = str(tmp_path / "http")
    async with (
        node(hello, elsewhere=Trusting(), listen=f"unix:{path}", certificates=RULES) as control,
        node(
            hello,
            elsewhere=Forwarding(path, lambda: True),
            trusted_proxies=ELSEWHERE,
            certificates=RULES,
        ) as data,
    ):
        seen: list[str] = []
        find = control.server._app.door._find

        def look(request: HttpRequest, method: str) -> Found:
            seen.extend(request.headers)
            return find(request, method)

        monkeypatch.setattr(control.server._app.door, "_find", look)
        assert (await ask(data.port, "GET", "/workers", headers={**OPS, **BY})).status == 401
        assert "x-smg-peer" in seen
        assert "x-forwarded-client-cert" not in seen


@pytest.mark.parametrize("networks", [HERE, ELSEWHERE])
async def test_a_tenant_is_named_by_a_believed_proxy_where_no_credential_says_another(
    networks: tuple[str, ...],
) -> None:
    async with node(hello, trusted_proxies=networks) as served:
        async with connect(served.port) as client:
            assert await said(client, BY) == 200
            assert await said(client, {}) == 200
            bad = await said(client, {"x-smg-tenant-id": "no/tenant"})
        tenants = [line.get("tenant", "") for line in lines_of(served)]
        runs = [run.context.tenant for run in served.generations.runs]
    if networks == HERE:
        assert (tenants[:2], runs[:2], bad) == (["acme", ""], ["acme", ""], 400)
    else:
        assert (tenants[:2], runs[:2], bad) == (["", ""], ["", ""], 200)


async def test_a_tenant_is_no_credential_and_no_operator() -> None:
    async with node(hello, trusted_proxies=HERE) as served:
        made = await ask(served.port, "POST", "/v1/cluster/keys", {"role": "admin", "tenant": "o"})
        key = {"authorization": f"Bearer {made.json()['key']}"}
        async with connect(served.port) as client:
            assert await said(client, BY) == 401
            assert await said(client, {**BY, **key}) == 200
        assert lines_of(served)[-1]["tenant"] == "o", "the key's own"


@pytest.mark.parametrize("networks", [HERE, ELSEWHERE])
async def test_what_a_believed_proxy_says_is_passed_on_and_nobody_says_it_himself(
    tmp_path: Path, networks: tuple[str, ...]
) -> None:
    path = str(tmp_path / "http")
    own = {TENANT: "evil", "x-smg-peer-certificate": f"99999999999999 {RULES[0].match}"}
    async with (
        node(
            hello, elsewhere=Trusting(), listen=f"unix:{path}", trusted_proxies=networks
        ) as control,
        node(hello, elsewhere=Forwarding(path, lambda: True), trusted_proxies=networks) as data,
    ):
        await ask(data.port, "GET", "/v1/usage", headers={**own, **BY, **FROM})
        (line,) = lines_of(control)
    believed = networks == HERE
    assert line.get("tenant", "") == ("acme" if believed else "")
    assert line["peer"] == ("203.0.113.7" if believed else "127.0.0.1")


async def test_loopback_behind_a_proxy_is_no_operator_of_this_machine() -> None:
    async with node(hello, trusted_proxies=HERE) as served:
        forged = {"x-forwarded-for": "127.0.0.1"}
        refused = await ask(served.port, "GET", "/workers", headers=forged)
        assert refused.status == 403
        assert re.search("direct requests", refused.error()["message"])
