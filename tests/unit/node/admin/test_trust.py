"""Files of smg-admin's TLS connections: what a node is believed on, and what is said of files that will not do."""

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smg_node.admin.client import AdminError, Trust
from support.http.certificate_authority import Authority
from support.http.served_tls import write_pair


def believed(trust: Trust, shown: tuple[str, str]) -> bool:
    """Whether a connection to a node that shows this certificate comes about."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*shown)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except ssl.SSLError:
            theirs.close()

    with ThreadPoolExecutor(1) as threads:
        served = threads.submit(serve)
        try:
            trust.context().wrap_socket(ours, server_hostname=trust.host).close()
        except ssl.SSLCertVerificationError:
            return False
        finally:
            ours.close()
            served.result(timeout=30)
    return True


def test_a_node_s_own_certificate_is_a_file_to_believe_it_on_whoever_issued_it(
    tmp_path: Path,
) -> None:
    # As a secret of Kubernetes has it: the certificate, and not the authority behind it.
    authority = Authority("one")
    pair = write_pair(tmp_path / "a", authority, "chat.example")
    other = write_pair(tmp_path / "b", authority, "chat.example")
    whole = tmp_path / "ca.pem"
    whole.write_bytes(authority.certificate)
    shown = (pair.certificate, pair.key)
    assert believed(Trust(pair.certificate, host="chat.example"), shown)
    assert believed(Trust(str(whole), host="chat.example"), shown)
    assert not believed(Trust(other.certificate, host="chat.example"), shown)
    assert not believed(Trust(pair.certificate, host="other.example"), shown)


@pytest.mark.parametrize(
    ("authority", "certificate", "key", "says"),
    [
        ("junk", "", "", "junk holds no PEM certificate to believe nodes on"),
        ("junk", "both", "", "junk holds no PEM certificate to believe nodes on"),
        ("a/tls.key", "", "", "a/tls.key holds no PEM certificate to believe nodes on"),
        ("ca", "a/tls.crt", "", "a/tls.crt holds no PEM certificate with its private key; --cert-"),
        ("ca", "a/tls.crt", "b/tls.key", "b/tls.key is not the key of a/tls.crt"),
        ("ca", "junk", "a/tls.key", "junk and a/tls.key are no PEM certificate and private key"),
        ("ca", "nowhere", "", "cannot use ca nowhere: no such file or directory"),
    ],
)
def test_files_that_will_not_do_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    authority: str,
    certificate: str,
    key: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    issuer = Authority("one")
    one = write_pair(tmp_path / "a", issuer, "chat.example")
    write_pair(tmp_path / "b", issuer, "chat.example")
    Path("ca").write_bytes(issuer.certificate)
    Path("junk").write_bytes(b"nothing of the kind")
    Path("both").write_bytes(Path(one.certificate).read_bytes() + Path(one.key).read_bytes())
    with pytest.raises(AdminError) as refused:
        Trust(authority, certificate, key).context()
    assert str(refused.value).startswith(says)
    assert Trust("ca", "both").context().verify_mode is ssl.CERT_REQUIRED
