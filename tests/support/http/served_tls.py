"""TLS of test nodes: an authority, files of a node's certificate, and the context of clients that believe it."""

import ssl
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from smg_node.http.tls_options import CertificatePair, TlsOptions
from support.http.certificate_authority import Authority


def write_pair(folder: Path, authority: Authority, *names: str) -> CertificatePair:
    """Write a certificate for these hosts and its key into a folder, in place of earlier ones."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / "tls.crt", folder / "tls.key"
    issued, private = authority.issue(*names)
    certificate.write_bytes(issued)
    key.write_bytes(private)
    key.chmod(0o600)
    return CertificatePair(str(certificate), str(key))


def trusting(authority: Authority) -> ssl.SSLContext:
    """Return the context of a client that believes this authority."""
    return ssl.create_default_context(cadata=authority.certificate.decode())


@cache
def localhost() -> tuple[TlsOptions, ssl.SSLContext]:
    """Return options with a certificate for `localhost`, and a client's context for it; one for all tests."""
    authority = Authority("a test's authority")
    folder = Path(mkdtemp(prefix="smg-tls-"))
    return TlsOptions(write_pair(folder, authority, "localhost")), trusting(authority)
