"""TLS files that will do only later, and those that will never do."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtensionOID

from smg_node.http.tls import server_contexts
from smg_node.http.tls.certificate_watch import CertificateWatch
from smg_node.http.tls.server_contexts import TlsFilesError, load
from smg_node.http.tls_options import CertificatePair, TlsOptions
from support.http.certificate_authority import Authority
from support.http.http_node import node
from support.http.raw_http import until
from support.http.served_tls import trusting, write_pair

NOW_S = 1_800_000_000.0
LOOKS = 12
"""More than after which refused files are tried again."""


class Counted:
    """What became of changed files."""

    taken = refused = 0

    def certificates_taken(self) -> None:
        self.taken += 1

    def certificates_refused(self) -> None:
        self.refused += 1


class Clock:
    now_s = NOW_S

    def __call__(self) -> float:
        return self.now_s


async def opened(options: TlsOptions, clock: Clock) -> tuple[CertificateWatch, Counted]:
    counted = Counted()
    watch = CertificateWatch(options, counted, now_s=clock)
    await watch.open()
    return watch, counted


async def look(watch: CertificateWatch, times: int = LOOKS) -> None:
    for _ in range(times):
        await watch.look()


def overwrite(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


def early(pair: CertificatePair, begins_s: float) -> None:
    """Replace a pair's certificate by one of the same key that is valid only from then on."""
    old = x509.load_pem_x509_certificate(Path(pair.certificate).read_bytes())
    begins = datetime.fromtimestamp(begins_s, UTC)
    issued = (
        x509.CertificateBuilder(old.issuer, old.subject, old.public_key(), old.serial_number)
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=90))
        .sign(ec.generate_private_key(ec.SECP256R1()), SHA256())
    )
    Path(pair.certificate).write_bytes(issued.public_bytes(Encoding.PEM))


async def test_a_certificate_that_is_not_valid_yet_is_taken_once_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    pair = write_pair(tmp_path, Authority("one"), "localhost")
    watch, counted = await opened(TlsOptions(pair), clock)
    first = watch.current
    early(pair, NOW_S + 5)
    await look(watch, 3 * LOOKS)
    assert watch.current is first
    assert (counted.taken, counted.refused) == (0, 1)
    assert caplog.text.count("kept the old certificates") == 1
    clock.now_s = NOW_S + 6
    await look(watch)
    assert watch.current is not first
    assert (counted.taken, counted.refused) == (1, 1)
    taken = watch.current
    await look(watch)
    assert watch.current is taken


async def test_files_that_could_not_be_read_are_taken_once_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority("one")
    pair = write_pair(tmp_path, authority, "localhost")
    watch, counted = await opened(TlsOptions(pair), Clock())
    first = watch.current
    write_pair(tmp_path, authority, "localhost")
    with monkeypatch.context() as patched:

        def full(path: str) -> bytes:
            raise TlsFilesError(f"cannot read {path}: Too many open files")

        patched.setattr(server_contexts, "_readable", full)
        await look(watch, 2 * LOOKS)
    assert watch.current is first
    assert (counted.taken, counted.refused) == (0, 1)
    await look(watch)
    assert watch.current is not first
    assert caplog.text.count("Too many open files") == 1


@pytest.mark.parametrize("gone", ["key", "authority"])
async def test_a_file_that_goes_while_it_is_read_leaves_the_old_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    authority = Authority("one")
    pair = write_pair(tmp_path, authority, "localhost")
    believed = tmp_path / "ca.pem"
    believed.write_bytes(authority.certificate)
    options = TlsOptions(pair, client="ask", client_authority=str(believed))
    watch, counted = await opened(options, Clock())
    first, readable = watch.current, server_contexts._readable
    write_pair(tmp_path, authority, "localhost")
    goes = pair.key if gone == "key" else str(believed)

    def reading(path: str) -> bytes:
        content = readable(path)
        if path == goes:
            Path(path).unlink()
        return content

    monkeypatch.setattr(server_contexts, "_readable", reading)
    await look(watch, 3)
    assert watch.current is first
    assert (counted.taken, counted.refused) == (0, 1)


async def test_a_pair_that_is_half_replaced_at_a_look_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority("one")
    pair = write_pair(tmp_path, authority, "localhost")
    watch, counted = await opened(TlsOptions(pair), Clock())
    first = watch.current
    certificate, key = authority.issue("localhost")
    overwrite(pair.key, key)
    await look(watch, 1)
    assert watch.current is first
    overwrite(pair.certificate, certificate)
    await look(watch, 1)
    assert watch.current is not first
    assert (counted.taken, counted.refused) == (1, 0)
    assert "kept the old" not in caplog.text
    # Left so, it is one.
    overwrite(pair.key, authority.issue("localhost")[1])
    await look(watch, 2)
    assert (counted.taken, counted.refused) == (1, 1)
    assert caplog.text.count("is not the key of") == 1


def _list(authority: Authority) -> bytes:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.fromtimestamp(NOW_S, UTC)
    name = x509.load_pem_x509_certificate(authority.certificate).subject
    revoked = x509.CertificateRevocationListBuilder(name, now, now + timedelta(days=1))
    return revoked.sign(key, SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lambda one: _list(one), ""),
        (lambda one: one.certificate, "holds no PEM list of revoked ones"),
        (lambda one: b"", "holds no PEM list of revoked ones"),
        (
            lambda one: _list(one) + Authority("revoked").certificate,
            "holds certificates beside lists of revoked ones",
        ),
    ],
)
def test_a_list_of_revoked_certificates_makes_nobody_believed(
    tmp_path: Path, content: Callable[[Authority], bytes], says: str
) -> None:
    authority = Authority("clients")
    believed, revoked = tmp_path / "ca.pem", tmp_path / "crl.pem"
    believed.write_bytes(authority.certificate)
    revoked.write_bytes(content(authority))
    options = TlsOptions(
        write_pair(tmp_path, authority, "localhost"),
        client="require",
        client_authority=str(believed),
        client_revoked=str(revoked),
    )
    if says:
        with pytest.raises(TlsFilesError, match=says):
            load(options)
    else:
        assert load(options).context.cert_store_stats() == {"x509": 1, "crl": 1, "x509_ca": 1}


def hello(host: bytes) -> bytes:
    """Return a TLS 1.2 greeting that names a host, in whatever bytes (RFC 5246 7.4.1.2, RFC 6066 3)."""

    def sized(content: bytes, digits: int = 2) -> bytes:
        return len(content).to_bytes(digits, "big") + content

    name = b"\x00\x00" + sized(sized(b"\x00" + sized(host)))
    body = b"\x03\x03" + bytes(32) + b"\x00" + sized(b"\xc0\x2b") + b"\x01\x00" + sized(name)
    return b"\x16\x03\x01" + sized(b"\x01" + sized(body, 3))


async def test_hosts_that_are_no_text_fill_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    hook = sys.unraisablehook
    authority = Authority("one")
    options = TlsOptions(
        write_pair(tmp_path / "a", authority, "localhost"),
        more={"b": write_pair(tmp_path / "b", authority, "chat.example")},
    )
    async with node(tls=options) as served:
        for host in (b"\xff\xfe", b"b\xc3\xbccher.example"):
            _, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(hello(host))
            await writer.drain()
            await until(
                lambda: served.sample("smg_node_tls_handshakes_total", outcome="failed") >= 1
            )
            writer.close()
        await until(lambda: served.sample("smg_node_tls_handshakes_total", outcome="failed") == 2)
        assert complaints == []
    assert sys.unraisablehook == hook
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def nameless(folder: Path, authority: Authority) -> CertificatePair:
    """Return a pair whose names are bytes that are no text, and whose authority is its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nobody")])
    begins = datetime(2020, 1, 1, tzinfo=UTC)
    number = x509.random_serial_number()
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), number)
    # GeneralNames with one URI (RFC 5280 4.2.1.6), of three bytes.
    names = x509.UnrecognizedExtension(
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\x30\x05\x86\x03\xff\xfeA"
    )
    builder = builder.not_valid_before(begins).not_valid_after(begins + timedelta(days=36_500))
    issued = builder.add_extension(names, critical=False).sign(key, SHA256())
    pair = write_pair(folder, authority, "nobody")
    Path(pair.certificate).write_bytes(issued.public_bytes(Encoding.PEM))
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(pair.key).write_bytes(private)
    return pair


async def test_a_client_whose_certificate_names_nothing_readable_fails_and_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority("one")
    client = nameless(tmp_path / "client", authority)
    own = write_pair(tmp_path / "own", authority, "localhost")
    options = TlsOptions(own, client="require", client_authority=client.certificate)
    trust = trusting(authority)
    trust.load_cert_chain(client.certificate, client.key)
    async with node(tls=options) as served:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", served.port, ssl=trust, server_hostname="localhost"
            )
            await reader.read()
            writer.close()
        await until(lambda: served.sample("smg_node_tls_handshakes_total", outcome="failed") == 1)
    assert "mistake of ours" not in caplog.text
