"""Certificates that engines are called with: files that change, and files that will not do."""

import logging
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from smg_node.engines.transport.tls_trust import Trust
from support.http.certificate_authority import Authority


class Files:
    """Files of one trust, which operators replace."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.more = folder / "ca.pem", folder / "more.pem"
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.mine = Authority("mine")
        self.authority.write_bytes(self.mine.certificate)
        self.more.write_bytes(Authority("more").certificate)
        self.renew()

    def renew(self) -> tuple[bytes, bytes]:
        certificate, key = self.mine.issue("node")
        self.certificate.write_bytes(certificate)
        self.key.write_bytes(key)
        return certificate, key

    def trust(self) -> Trust:
        return Trust(self.authority, self.certificate, self.key, (str(self.more),))


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.message for one in caplog.records if one.levelno == logging.WARNING]


def test_a_context_is_the_same_until_a_file_changes(tmp_path: Path) -> None:
    files = Files(tmp_path)
    trust = files.trust()
    first, web = trust.context(), trust.http_context()
    assert trust.context() is first
    assert trust.http_context() is web is not first
    assert len(first.get_ca_certs()) == 2
    files.renew()
    assert trust.context() is not first
    assert trust.http_context() is not web
    assert trust.context() is trust.context()


def test_a_file_exchanged_by_a_link_is_another_one(tmp_path: Path) -> None:
    """As volumes of secrets do it: names stay, what they lead to is another folder."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Files(tmp_path / name)
    link = tmp_path / "now"
    link.symlink_to("a")
    trust = Trust(link / "ca.pem", link / "tls.crt", link / "tls.key")
    first = trust.context()
    (tmp_path / "next").symlink_to("b")
    (tmp_path / "next").rename(link)
    second = trust.context()
    assert second is not first
    assert second.get_ca_certs(binary_form=True) != first.get_ca_certs(binary_form=True)


def test_files_that_do_not_fit_together_change_nothing_and_are_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Files(tmp_path)
    trust = files.trust()
    first = trust.context()
    certificate, key = files.mine.issue("node")
    files.certificate.write_bytes(certificate)
    assert trust.context() is first
    assert trust.context() is first
    (said,) = complaints(caplog)
    assert said.startswith("kept the old certificates of engine.tls: ")
    files.key.write_bytes(key)
    assert trust.context() is not first
    files.key.unlink()
    assert trust.context() is trust.context()
    assert len(complaints(caplog)) == 2


def test_at_first_files_have_to_do(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.more.unlink()
    with pytest.raises(OSError, match="No such file"):
        files.trust().context()
    files.more.write_text("nonsense")
    with pytest.raises(ssl.SSLError):
        files.trust().context()


def test_a_key_with_a_password_is_refused_and_not_asked_for(tmp_path: Path) -> None:
    files = Files(tmp_path)
    key = load_pem_private_key(files.key.read_bytes(), None)
    locked = BestAvailableEncryption(b"secret")
    files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
    with pytest.raises(OSError, match="needs a password, which a node has not"):
        files.trust().context()


def test_a_library_is_given_all_authorities(tmp_path: Path) -> None:
    files = Files(tmp_path)
    authorities, key, certificate = files.trust().files()
    assert authorities.count(b"BEGIN CERTIFICATE") == 2
    assert (key, certificate) == (files.key.read_bytes(), files.certificate.read_bytes())


def test_whether_there_are_files_is_known_without_reading_them(tmp_path: Path) -> None:
    assert not Trust().named
    assert Trust(tmp_path / "none").named
    assert Trust(more=("none",)).named
