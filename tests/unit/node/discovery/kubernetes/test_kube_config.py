"""Kubeconfig files and accounts of pods → how an API server is reached."""

import base64
import os
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from smg_node.discovery.kubernetes.kube_config import (
    Access,
    AccessError,
    AccessFiles,
    account_access,
    file_access,
    tls_context,
)
from support.http.certificate_authority import Authority

INSIDE = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def account(folder: Path, token: str = "t-1", namespace: str = "serving") -> Path:
    (folder / "token").write_text(f"{token}\n")
    (folder / "ca.crt").write_text("authority")
    (folder / "namespace").write_text(namespace)
    return folder


def written(folder: Path, **parts: Any) -> Path:
    """Write a kubeconfig; `cluster`, `user` and `context` are laid over what is right."""
    cluster = {"server": "https://kube.example:6443/"} | parts.get("cluster", {})
    context = {"cluster": "here", "user": "me"} | parts.get("context", {})
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "other", "cluster": {}}, {"name": "here", "cluster": cluster}],
        "users": [{"name": "me", "user": {"token": "hidden-1"} | parts.get("user", {})}],
        "contexts": [{"name": "here", "context": context}],
    }
    path = folder / "config"
    path.write_text(yaml.safe_dump(document | parts.get("whole", {})))
    return path


def test_an_account_is_read_from_its_folder(tmp_path: Path) -> None:
    access = account_access(INSIDE, account(tmp_path))
    assert access.server == "https://10.96.0.1:443"
    assert (access.token, access.namespace, access.authority) == ("t-1", "serving", b"authority")


def test_an_address_of_ipv6_gets_brackets(tmp_path: Path) -> None:
    access = account_access(INSIDE | {"KUBERNETES_SERVICE_HOST": "fd00::1"}, account(tmp_path))
    assert access.server == "https://[fd00::1]:443"


def test_outside_of_a_pod_the_setting_is_named(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"discovery\.kubeconfig"):
        account_access({}, tmp_path)


def test_an_account_without_a_token_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"(ca\.crt|token): no such file"):
        account_access(INSIDE, tmp_path)


def test_a_kubeconfig_is_read_by_its_current_context(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"authority")
    access = file_access(
        written(
            tmp_path,
            cluster={"certificate-authority": "ca.pem"},
            context={"namespace": "serving"},
        )
    )
    assert access.server == "https://kube.example:6443"
    assert (access.token, access.namespace, access.authority) == (
        "hidden-1",
        "serving",
        b"authority",
    )
    assert access.files == (tmp_path / "config", tmp_path / "ca.pem")


def test_what_is_inline_is_base64(tmp_path: Path) -> None:
    inline = base64.b64encode(b"pem").decode()
    user = {"client-certificate-data": inline, "client-key-data": inline, "token": None}
    access = file_access(
        written(tmp_path, user=user, cluster={"certificate-authority-data": inline})
    )
    assert (access.authority, access.certificate, access.key) == (b"pem",) * 3
    assert access.token == ""


def test_a_token_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t-2\n")
    access = file_access(written(tmp_path, user={"token": None, "tokenFile": "token"}))
    assert access.token == "t-2"
    assert tmp_path / "token" in access.files


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"user": {"exec": {"command": "get-token"}}}, r"users\[0\]\.user\.exec: programs that"),
        (
            {"user": {"auth-provider": {"name": "x"}}},
            r"users\[0\]\.user\.auth-provider: it is gone",
        ),
        ({"user": {"username": "me"}}, r"users\[0\]\.user\.username: passwords"),
        ({"user": {"as": "root"}}, r"users\[0\]\.user\.as: nobody is impersonated"),
        ({"user": {"client-certificate-data": "eA=="}}, "client-certificate and client-key"),
        ({"user": {"token": 5}}, r"users\[0\]\.user\.token is missing, or no text"),
        ({"user": {"token": "a\nb"}}, r"users\[0\]\.user\.token holds a control character"),
        ({"cluster": {"insecure-skip-tls-verify": True}}, "insecure-skip-tls-verify is not"),
        ({"cluster": {"proxy-url": "http://p"}}, "proxy-url is not supported"),
        ({"cluster": {"server": "kube:6443"}}, r"clusters\[1\]\.cluster\.server must begin"),
        ({"cluster": {"server": None}}, r"clusters\[1\]\.cluster\.server is missing"),
        ({"cluster": {"certificate-authority-data": "%"}}, "authority-data is no base64"),
        ({"cluster": {"certificate-authority": "none.pem"}}, r"none\.pem: no such file"),
        ({"context": {"user": "you"}}, "users has no 'you'"),
        ({"whole": {"current-context": ""}}, "current-context is missing"),
        ({"whole": {"contexts": "x"}}, "contexts has no 'here'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(AccessError, match=message) as raised:
        file_access(written(tmp_path, **parts))
    assert "hidden-1" not in str(raised.value)


def test_what_is_no_yaml_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("a: 1\nb: [\n")
    with pytest.raises(AccessError, match=r"config, line 3: it is no YAML"):
        file_access(path)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_kubeconfig_or_an_error(text: bytes) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"kubeconfig-{os.getpid()}"
    path.write_bytes(text)
    try:
        with pytest.raises(AccessError):
            file_access(path)
    finally:
        path.unlink()


def test_secrets_are_in_no_representation(tmp_path: Path) -> None:
    access = Access("https://a", token="t-secret", certificate=b"c-secret", key=b"k-secret")
    assert "secret" not in repr(access)


def test_files_are_read_again_when_one_of_them_is_another(tmp_path: Path) -> None:
    files = AccessFiles(lambda: account_access(INSIDE, account_folder))
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, token in ((first, "t-1"), (second, "t-2-longer")):
        folder.mkdir()
        account(folder, token)
    # A mounted account is links to a folder, which another link replaces.
    account_folder = tmp_path / "account"
    account_folder.symlink_to(first)
    assert files.current().token == "t-1"
    assert files.current() is files.current()
    account_folder.unlink()
    account_folder.symlink_to(second)
    assert files.current().token == "t-2-longer"


def test_forgotten_files_are_read_again(tmp_path: Path) -> None:
    reads: list[int] = []

    def read() -> Access:
        reads.append(1)
        return Access("https://a")

    files = AccessFiles(read)
    files.current()
    files.current()
    files.forget()
    files.current()
    assert len(reads) == 2


def test_files_that_fail_are_read_again_the_next_time(tmp_path: Path) -> None:
    files = AccessFiles(lambda: account_access(INSIDE, tmp_path))
    with pytest.raises(AccessError):
        files.current()
    account(tmp_path)
    assert files.current().token == "t-1"


def test_a_context_has_the_authority_and_the_certificate() -> None:
    authority = Authority("kube")
    certificate, key = authority.issue("node")
    access = Access("https://a", authority=authority.certificate, certificate=certificate, key=key)
    context = tls_context(access)
    assert context.cert_store_stats()["x509_ca"] == 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize(
    "access",
    [
        Access("https://a", authority=b"none"),
        Access("https://a", authority=b"\xff"),
        Access("https://a", certificate=b"none", key=b"none"),
    ],
)
def test_certificates_that_are_none_are_an_error(access: Access) -> None:
    with pytest.raises(AccessError, match="a certificate or key cannot be used"):
        tls_context(access)


def test_a_key_of_another_certificate_is_an_error() -> None:
    authority = Authority("kube")
    certificate, _ = authority.issue("node")
    _, key = authority.issue("node")
    with pytest.raises(AccessError, match="KEY_VALUES_MISMATCH"):
        tls_context(Access("https://a", certificate=certificate, key=key))
