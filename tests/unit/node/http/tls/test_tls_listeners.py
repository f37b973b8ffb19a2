"""TLS listeners: handshakes and their limits, renewed certificates, hosts, certificates of clients."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.http.tls import certificate_watch
from smg_node.http.tls_options import CertificatePair, TlsOptions
from support.http.certificate_authority import Authority
from support.http.http_node import Node, node
from support.http.raw_http import RawClient, connect, until
from support.http.served_tls import trusting, write_pair

QUICK_S = 0.02
"""How often a test's node looks at its files."""
HANDSHAKES = "smg_node_tls_handshakes_total"


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    run = certificate_watch.CertificateWatch.__init__

    def quick(self: Any, *given: Any, **named: Any) -> None:
        run(self, *given, **named, look_interval_s=QUICK_S)

    monkeypatch.setattr(certificate_watch.CertificateWatch, "__init__", quick)


@contextlib.asynccontextmanager
async def opened(
    port: int, trust: ssl.SSLContext, host: str = "localhost"
) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trust, server_hostname=host
    )
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()


async def leaf(port: int, trust: ssl.SSLContext, host: str = "localhost") -> bytes:
    """Return the certificate that a new connection is shown."""
    async with opened(port, trust, host) as client:
        shown: ssl.SSLObject = client.writer.get_extra_info("ssl_object")
        found = shown.getpeercert(binary_form=True)
        assert found is not None
        return found


async def healthy(client: RawClient) -> bool:
    await client.send("GET", "/health")
    return (await client.response()).status == 200


def reloaded(served: Node, times: int) -> bool:
    return served.sample("smg_node_tls_reloads_total") >= times


def overwrite(path: str, content: bytes | None) -> None:
    """Write a file anew, or take it away."""
    if content is None:
        Path(path).unlink()
    else:
        Path(path).write_bytes(content)


def counted(served: Node, outcome: str) -> float:
    return served.sample(HANDSHAKES, outcome=outcome)


async def test_renewed_certificates_are_shown_to_new_connections_and_old_ones_go_on(
    tmp_path: Path,
) -> None:
    authority = Authority("one")
    trust = trusting(authority)
    pair = write_pair(tmp_path, authority, "localhost")
    async with node(tls=TlsOptions(pair)) as served, opened(served.port, trust) as kept:
        assert await healthy(kept)
        shown = {await leaf(served.port, trust)}
        for turn in range(1, 6):
            write_pair(tmp_path, authority, "localhost")
            await until(partial(reloaded, served, turn))
            shown.add(await leaf(served.port, trust))
        assert len(shown) == 6
        assert await healthy(kept)
        left_s = served.sample("smg_node_tls_certificate_expires_seconds", pair="default")
        assert left_s > 80 * 365 * 86_400


async def test_files_that_do_not_fit_change_nothing_and_are_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority("one")
    trust = trusting(authority)
    pair = write_pair(tmp_path, authority, "localhost")
    async with node(tls=TlsOptions(pair)) as served:
        first = await leaf(served.port, trust)
        other, _ = authority.issue("localhost")
        overwrite(pair.certificate, other)
        failures = "smg_node_tls_reload_failures_total"
        await until(lambda: served.sample(failures) == 1)
        assert await leaf(served.port, trust) == first
        overwrite(pair.certificate, None)
        await until(lambda: served.sample(failures) == 2)
        assert await leaf(served.port, trust) == first
        await asyncio.sleep(5 * QUICK_S)
        assert served.sample(failures) == 2
        write_pair(tmp_path, authority, "localhost")
        await until(lambda: served.sample("smg_node_tls_reloads_total") >= 1)
        assert await leaf(served.port, trust) != first
    texts = [record.getMessage() for record in caplog.records]
    assert (
        f"kept the old certificates of the listeners: {pair.key} is not the key of {pair.certificate}"
        in texts[0]
    )
    assert "cannot read" in texts[1]


async def test_a_volume_of_secrets_that_exchanges_a_link_is_seen(tmp_path: Path) -> None:
    authority = Authority("one")
    trust = trusting(authority)
    for version in ("1", "2"):
        write_pair(tmp_path / version, authority, "localhost")
    link = tmp_path / "data"
    link.symlink_to("1")
    pair = CertificatePair(str(link / "tls.crt"), str(link / "tls.key"))
    async with node(tls=TlsOptions(pair)) as served:
        first = await leaf(served.port, trust)
        new = tmp_path / "new"
        new.symlink_to("2")
        new.rename(link)
        await until(lambda: served.sample("smg_node_tls_reloads_total") == 1)
        assert await leaf(served.port, trust) != first


async def test_the_host_that_a_client_names_chooses_the_pair(tmp_path: Path) -> None:
    authority = Authority("one")
    trust = trusting(authority)
    options = TlsOptions(
        write_pair(tmp_path / "a", authority, "localhost"),
        more={
            "b": write_pair(tmp_path / "b", authority, "chat.example"),
            "c": write_pair(tmp_path / "c", authority, "*.pool.example"),
        },
    )
    async with node(tls=options) as served:
        hosts = ["localhost", "chat.example", "one.pool.example"]
        leaves = [await leaf(served.port, trust, host) for host in hosts]
        assert len(set(leaves)) == 3
        lax = trusting(authority)
        lax.check_hostname = False
        for host in ("nobody.example", "a.b.pool.example", "pool.example"):
            assert await leaf(served.port, lax, host) == leaves[0]
        assert await leaf(served.port, trust, "CHAT.example") == leaves[1]


async def test_handshakes_that_never_end_are_limited_and_end_in_time(tmp_path: Path) -> None:
    authority = Authority("one")
    trust = trusting(authority)
    options = TlsOptions(
        write_pair(tmp_path, authority, "localhost"), handshake_s=0.5, handshakes_max=8
    )
    async with node(tls=options) as served:
        silent = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(20)]
        await until(lambda: counted(served, "refused") == 12)
        await until(lambda: counted(served, "timeout") == 8)
        for reader, writer in silent:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        async with opened(served.port, trust) as client:
            assert await healthy(client)
        assert counted(served, "ok") == 1


@pytest.mark.parametrize(
    ("said", "outcome"),
    [(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", "plain_http"), (b"\x00" * 64, "failed")],
)
async def test_what_is_no_tls_is_counted_as_what_it_is(
    tmp_path: Path, said: bytes, outcome: str
) -> None:
    pair = write_pair(tmp_path, Authority("one"), "localhost")
    async with node(tls=TlsOptions(pair)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(said)
        await until(lambda: counted(served, outcome) == 1)
        with contextlib.suppress(ConnectionError):
            assert b"HTTP" not in await reader.read()
        writer.close()
        gone = await asyncio.open_connection("127.0.0.1", served.port)
        gone[1].close()
        await until(lambda: counted(served, "gone") + counted(served, "failed") >= 1)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_s_certificate_opens_the_door(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    authority, clients, others = Authority("one"), Authority("clients"), Authority("others")
    believed = tmp_path / "clients.pem"
    believed.write_bytes(clients.certificate)
    options = TlsOptions(
        write_pair(tmp_path / "own", authority, "localhost"),
        client="require",
        client_authority=str(believed),
    )

    def showing(issuer: Authority | None) -> ssl.SSLContext:
        trust = trusting(authority)
        trust.minimum_version = trust.maximum_version = version
        if issuer is not None:
            pair = write_pair(tmp_path / "client", issuer, "somebody")
            trust.load_cert_chain(pair.certificate, pair.key)
        return trust

    async def let_in(port: int, trust: ssl.SSLContext) -> bool:
        try:
            async with opened(port, trust) as client:
                return await healthy(client)
        except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
            return False

    async with node(tls=options) as served:
        known = showing(clients)
        assert await let_in(served.port, known)
        assert not await let_in(served.port, showing(None))
        assert not await let_in(served.port, showing(others))
        believed.write_bytes(others.certificate)
        await until(lambda: served.sample("smg_node_tls_reloads_total") == 1)
        assert not await let_in(served.port, known)
        assert await let_in(served.port, showing(others))
    async with node(tls=replace(options, client="ask")) as served:
        assert await let_in(served.port, showing(None))
        # A certificate of another authority is not the same as none.
        assert not await let_in(served.port, showing(clients))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ("certificate", "holds no PEM certificate"),
        ("missing", "cannot read"),
        ("password", "needs a password"),
        ("other", "is not the key of"),
    ],
)
async def test_wrong_files_at_the_start_are_an_error_that_names_them(
    tmp_path: Path, spoil: str, says: str
) -> None:
    authority = Authority("one")
    pair = write_pair(tmp_path, authority, "localhost")
    if spoil == "certificate":
        overwrite(pair.certificate, b"nothing of the kind")
        says = "are no PEM certificate and private key$"
    elif spoil == "missing":
        overwrite(pair.key, None)
    elif spoil == "other":
        overwrite(pair.key, authority.issue("localhost")[1])
    else:
        overwrite(pair.key, locked(pair.key))
    with pytest.raises(SmgError, match=says):
        async with node(tls=TlsOptions(pair)):
            pass


def locked(path: str) -> bytes:
    """Return the key of a file with a password."""
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    private = load_pem_private_key(Path(path).read_bytes(), None)
    return private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password")
    )


async def test_the_metrics_are_plain_unless_they_are_told_not_to_be(tmp_path: Path) -> None:
    authority = Authority("one")
    pair = write_pair(tmp_path, authority, "localhost")
    async with node(tls=TlsOptions(pair)) as served:
        assert served.server.metrics_address is not None
        async with connect(served.server.metrics_address.port) as client:
            await client.send("GET", "/metrics")
            assert (await client.response()).status == 200
