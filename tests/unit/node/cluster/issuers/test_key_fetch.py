"""Key fetch: what an issuer answers is bounded, believed only where it is the right one, and never followed elsewhere."""

import gzip
import json
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.access.tokens.issuer import Introspection, Issuer
from smg_node.cluster.issuers import issuer_client
from smg_node.cluster.issuers.introspection_call import ask_about
from smg_node.cluster.issuers.key_fetch import fetch_keys
from smg_node.cluster.issuers.key_ports import IssuerError
from support.http.certificate_authority import Authority
from support.http.served_tls import write_pair
from support.oidc.scripted_issuer import JSON, Scripted, ScriptedIssuer, scripted_issuer

DISCOVERY = "/.well-known/openid-configuration"
KEYS = b'{"keys":[{"kid":"a","kty":"RSA"}]}'
SHARED = b'{"keys":[{"kid":"a","kty":"RSA"}]}'
SECRET = "planted-secret-0123456789"


def issuer_at(base: str) -> Issuer:
    return Issuer("corp", base, ("smg",))


def good(scripted: ScriptedIssuer, base: str = "") -> Issuer:
    """Let a scripted issuer have keys; return it as it is configured."""
    named = {"issuer": base or scripted.base, "jwks_uri": f"{scripted.base}/keys"}
    scripted.answers[DISCOVERY] = Scripted(json.dumps(named).encode())
    headers = {"content-type": "application/jwk-set+json", "cache-control": "max-age=3600"}
    scripted.answers["/keys"] = Scripted(KEYS, headers=headers)
    return issuer_at(base or scripted.base)


async def trouble(issuer: Issuer) -> str:
    with pytest.raises(IssuerError) as caught:
        await fetch_keys(issuer)
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_keys_are_found_by_the_discovery_document() -> None:
    async with scripted_issuer() as scripted:
        found = await fetch_keys(good(scripted))
        assert (found.document, found.max_age_ms) == (SHARED, 3_600_000)
        assert [path for _, path, _, _ in scripted.asked] == [DISCOVERY, "/keys"]
        assert all("authorization" not in headers for _, _, headers, _ in scripted.asked)


async def test_with_a_url_of_the_keys_nothing_is_discovered() -> None:
    async with scripted_issuer() as scripted:
        issuer = replace(good(scripted), issuer="urn:any", keys_url=f"{scripted.base}/keys")
        assert (await fetch_keys(issuer)).document == SHARED
        assert [path for _, path, _, _ in scripted.asked] == ["/keys"]


async def test_the_document_of_another_issuer_is_not_believed() -> None:
    async with scripted_issuer() as scripted:
        issuer = good(scripted)
        assert "is of" in await trouble(replace(issuer, issuer=issuer.issuer + "/"))


@pytest.mark.parametrize(
    ("path", "answer", "why"),
    [
        (DISCOVERY, Scripted(b"", 404), "discovery: it answered 404"),
        (DISCOVERY, Scripted(b"", 403), "it wants to know who asks (token_file)"),
        (DISCOVERY, Scripted(b"", 302, {"location": "/other"}), "redirects are not followed"),
        (DISCOVERY, Scripted(b" " * 65_537), "more than 65,536 bytes"),
        (DISCOVERY, Scripted(b"<html>"), "no JSON object"),
        ("/keys", Scripted(b"", 500), "it answered 500"),
        ("/keys", Scripted(b"", 301, {"location": "/other"}), "redirects are not followed"),
        ("/keys", Scripted(b"x" * 1_048_577), "more than 1,048,576 bytes"),
        ("/keys", Scripted(b"[]"), "no JSON object"),
        ("/keys", Scripted(b'{"keys":1}'), "no list of keys"),
        (
            "/keys",
            Scripted(gzip.compress(KEYS), headers={"content-encoding": "gzip"}),
            "no JSON object",
        ),
    ],
)
async def test_what_is_wrong_with_an_answer_is_said(path: str, answer: Scripted, why: str) -> None:
    async with scripted_issuer() as scripted:
        issuer = good(scripted)
        scripted.answers[path] = answer
        assert why in await trouble(issuer)
        assert all(asked != "/other" for _, asked, _, _ in scripted.asked)


async def test_an_issuer_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_client, "FETCH_S", 0.2)
    async with scripted_issuer() as scripted:
        issuer = good(scripted)
        scripted.answers["/keys"] = Scripted(KEYS, stalls=True)
        assert "no whole answer within" in await trouble(issuer)


async def test_nobody_at_the_port_is_said_plainly() -> None:
    assert "cannot be reached" in await trouble(issuer_at("http://127.0.0.1:9"))
    assert "cannot be reached" in await trouble(issuer_at("https://no-such-host.invalid"))


async def test_keys_elsewhere_are_fetched_by_https_only() -> None:
    async with scripted_issuer() as scripted:
        issuer = good(scripted)
        named = {"issuer": issuer.issuer, "jwks_uri": "http://192.0.2.1/keys"}
        scripted.answers[DISCOVERY] = Scripted(json.dumps(named).encode())
        assert "http is for this machine only" in await trouble(issuer)
        assert "is not by https" in await trouble(issuer_at("http://192.0.2.1"))


async def test_an_issuer_that_wants_a_token_gets_the_one_that_is_in_the_file_now(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    async with scripted_issuer() as scripted:
        issuer = replace(good(scripted), token_file=str(file))
        assert "token cannot be read" in await trouble(issuer)
        for token in (f"{SECRET}-1", f"{SECRET}-2"):
            file.write_text(f"{token}\n")
            scripted.asked.clear()
            assert (await fetch_keys(issuer)).document == SHARED
            sent = [headers["authorization"] for _, _, headers, _ in scripted.asked]
            assert sent == [f"Bearer {token}"] * 2
        for content in (b"", b"\n", b"a\nb", b"\xff\xff", b"x" * 70_000):
            file.write_bytes(content)
            assert "holds no secret" in await trouble(issuer)


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, Path, Path]:
    """Return the context of an issuer, the file of its authority and that of another one."""
    authority = Authority("an issuer's authority")
    pair = write_pair(tmp_path / "tls", authority, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    files = []
    for name, one in (("own", authority), ("other", Authority("another one"))):
        files.append(tmp_path / f"{name}.pem")
        files[-1].write_bytes(one.certificate)
    return context, files[0], files[1]


async def test_the_authority_of_an_issuer_is_believed_and_no_other(
    tls: tuple[ssl.SSLContext, Path, Path], tmp_path: Path
) -> None:
    context, own, other = tls
    async with scripted_issuer(context) as scripted:
        issuer = good(scripted)
        found = await fetch_keys(replace(issuer, authority=str(own)))
        assert found.document == SHARED
        assert "not trusted" in await trouble(replace(issuer, authority=str(other)))
        assert "not trusted" in await trouble(issuer)
        missing = replace(issuer, authority=str(tmp_path / "none.pem"))
        assert "none.pem cannot be read" in await trouble(missing)
        (tmp_path / "odd.pem").write_text("no certificate")
        odd = replace(issuer, authority=str(tmp_path / "odd.pem"))
        assert "odd.pem cannot be used" in await trouble(odd)


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with scripted_issuer() as scripted:
        assert (await fetch_keys(good(scripted))).document == SHARED


async def test_a_token_is_asked_about_as_a_client_of_the_issuer(tmp_path: Path) -> None:
    file = tmp_path / "client"
    file.write_text(f"{SECRET}:%\n")
    async with scripted_issuer() as scripted:
        asked = Introspection(f"{scripted.base}/introspect", "smg:node", str(file))
        issuer = replace(issuer_at(scripted.base), introspection=asked)
        scripted.answers["/introspect"] = Scripted(
            b'{"active":false}', headers={"content-type": JSON}
        )
        assert await ask_about(issuer, "a+b&c=d") == b'{"active":false}'
        ((method, _, headers, body),) = scripted.asked
        assert (method, body) == ("POST", b"token=a%2Bb%26c%3Dd&token_type_hint=access_token")
        assert headers["content-type"] == "application/x-www-form-urlencoded"
        # RFC 6749 2.3.1: both halves are encoded first.
        assert headers["authorization"] == (
            "Basic c21nJTNBbm9kZTpwbGFudGVkLXNlY3JldC0wMTIzNDU2Nzg5JTNBJTI1"
        )


@pytest.mark.parametrize(
    "broken",
    [
        lambda issuer, path: replace(issuer, token_file=str(path)),
        lambda issuer, path: replace(
            issuer, introspection=Introspection(issuer.issuer, "id", str(path))
        ),
    ],
)
async def test_no_error_shows_a_secret(
    tmp_path: Path, broken: Callable[[Issuer, Path], Issuer]
) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\nand a second line\n")
    async with scripted_issuer() as scripted:
        issuer = broken(good(scripted), file)
        scripted.answers["/keys"] = Scripted(SECRET.encode(), 500)
        for asking in (fetch_keys(issuer), ask_about_or_fetch(issuer)):
            with pytest.raises(IssuerError) as caught:
                await asking
            assert SECRET not in str(caught.value) + repr(caught.value)


async def ask_about_or_fetch(issuer: Issuer) -> object:
    return await (fetch_keys(issuer) if issuer.introspection is None else ask_about(issuer, SECRET))
