"""Kubeconfig: where an API server is, what it is trusted by and who asks; or the same of a pod's own account.

Programs that a kubeconfig would run for a token are not run: a node's rights do not depend on what is installed beside
it. Tokens and keys never appear in a message or a `repr`.
"""

import ssl
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from smg_node.config.address import join_host_port
from smg_node.discovery.kubernetes.secret_files import load_certificate

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token, the authority and the namespace of its account."""
_FILE_MAX_BYTES: Final = 1024 * 1024
_NOT_TAKEN: Final[Mapping[str, str]] = {
    "exec": "programs that print a token are not run; use a token, a tokenFile or a client certificate",
    "auth-provider": "it is gone from Kubernetes; use a token, a tokenFile or a client certificate",
    "username": "passwords are gone from Kubernetes; use a token, a tokenFile or a client certificate",
    "password": "passwords are gone from Kubernetes; use a token, a tokenFile or a client certificate",
    "as": "nobody is impersonated; use a token of whom it is",
}


class AccessError(Exception):
    """No access can be had from these files, and why, in words for operators."""


@dataclass(frozen=True, slots=True)
class Access:
    """How an API server is reached. `server` has no slash at its end; `authority` is empty for this machine's own.

    `files` are what it was read from: it is to be read again when one of them changes.
    """

    server: str
    namespace: str = "default"
    authority: bytes = b""
    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    files: tuple[Path, ...] = ()

    @property
    def connection(self) -> tuple[str, bytes, bytes, bytes]:
        """What a connection depends on: with another one, connections begin anew."""
        return self.server, self.authority, self.certificate, self.key


class AccessFiles:
    """The access that its files give now: read again when one of them is another file or another text."""

    def __init__(self, read: Callable[[], Access]) -> None:
        self._read = read
        self._access: Access | None = None
        self._stamps: tuple[tuple[int, int, int], ...] = ()

    def current(self) -> Access:
        """Return the access as its files are now; AccessError if they give none. Reads files."""
        if self._access is None or _stamps(self._access.files) != self._stamps:
            self._access = None
            access = self._read()
            self._stamps = _stamps(access.files)
            self._access = access
        return self._access

    def forget(self) -> None:
        """Read the files anew the next time, whether they changed or not."""
        self._access = None


def account_access(environment: Mapping[str, str], folder: Path = ACCOUNT) -> Access:
    """Return the access of a pod's own account; AccessError outside of a pod, or where no token is mounted."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise AccessError(
            "this node does not run in a pod (KUBERNETES_SERVICE_HOST is not set); outside of Kubernetes"
            " discovery.kubeconfig names a file that says where the API server is"
        )
    if not (port.isascii() and port.isdigit()):
        raise AccessError("KUBERNETES_SERVICE_PORT is no port")
    files = (folder / "token", folder / "ca.crt", folder / "namespace")
    token, authority, namespace = files
    return Access(
        server=f"https://{join_host_port(host, int(port))}",
        namespace=_text(namespace).strip() if namespace.exists() else "default",
        authority=_bytes(authority),
        token=_text(token).strip(),
        files=files,
    )


def file_access(path: Path) -> Access:
    """Return the access that the current context of a kubeconfig file names; AccessError with the place of a mistake."""
    # Not for a pod's own account, which has no YAML.
    import yaml

    try:
        document = yaml.safe_load(_text(path))
    except (yaml.YAMLError, RecursionError) as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise AccessError(f"{path}{line}: it is no YAML") from None
    kubeconfig = _Part(path, "", document if isinstance(document, dict) else {})
    context = kubeconfig.named("contexts", "context", kubeconfig.text("current-context"))
    cluster = kubeconfig.named("clusters", "cluster", context.text("cluster"))
    user = kubeconfig.named("users", "user", context.text("user"))
    for key, why in _NOT_TAKEN.items():
        if user.has(key):
            raise AccessError(f"{path}: {user.place}.{key}: {why}")
    for key in ("insecure-skip-tls-verify", "proxy-url", "tls-server-name"):
        if cluster.has(key):
            raise AccessError(f"{path}: {cluster.place}.{key} is not supported")
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise AccessError(f"{path}: {cluster.place}.server must begin with https:// or http://")
    certificate, key_pem = user.pem("client-certificate"), user.pem("client-key")
    if bool(certificate) != bool(key_pem):
        raise AccessError(f"{path}: {user.place} needs client-certificate and client-key together")
    token_file = user.file("tokenFile")
    token = user.text("token", "") or (_text(token_file).strip() if token_file else "")
    authority = cluster.pem("certificate-authority")
    return Access(
        server=server,
        namespace=context.text("namespace", "default"),
        authority=authority,
        token=token,
        certificate=certificate,
        key=key_pem,
        files=tuple(dict.fromkeys((path, *cluster.files, *user.files))),
    )


def tls_context(access: Access) -> ssl.SSLContext:
    """Return what checks the API server and shows it a client certificate; AccessError if the files hold none."""
    try:
        authority = access.authority.decode("ascii") if access.authority else None
        context = ssl.create_default_context(cadata=authority)
        # Authorities of clusters are often without the key identifiers that Python 3.13 asks for, and kubectl does not.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.set_alpn_protocols(("http/1.1",))
        if access.certificate:
            load_certificate(context, access.certificate, access.key)
    except (ssl.SSLError, ValueError, OSError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise AccessError(f"a certificate or key cannot be used: {reason}") from None
    return context


class _Part:
    """A mapping of a kubeconfig, with its place for error messages."""

    def __init__(self, path: Path, place: str, values: Mapping[Any, Any]) -> None:
        self.place = place
        self.files: list[Path] = []
        self._path = path
        self._values = values

    def has(self, key: str) -> bool:
        """Return whether something is said there; `false` and nothing are not."""
        return self._values.get(key) not in (None, "", False)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; AccessError if there is none and no default."""
        value = self._values.get(key)
        if value in (None, "") and default is not None:
            return default
        if not isinstance(value, str) or not value:
            raise AccessError(f"{self._path}: {self._at(key)} is missing, or no text")
        if not value.isprintable():
            raise AccessError(f"{self._path}: {self._at(key)} holds a control character")
        return value

    def named(self, group: str, inner: str, name: str) -> "_Part":
        """Return the entry of that name in a list of them."""
        entries = self._values.get(group)
        for at, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and entry.get("name") == name:
                values = entry.get(inner)
                place = f"{group}[{at}].{inner}"
                return _Part(self._path, place, values if isinstance(values, dict) else {})
        raise AccessError(f"{self._path}: {group} has no {name[:80]!r}")

    def file(self, key: str) -> Path | None:
        """Return the path that is said there, which is relative to the kubeconfig; it is noted in `files`."""
        said = self.text(key, "")
        if not said:
            return None
        path = self._path.parent / said
        self.files.append(path)
        return path

    def pem(self, key: str) -> bytes:
        """Return what `key-data` holds, or the file of `key`; empty if neither is there."""
        inline = self.text(f"{key}-data", "")
        if inline:
            try:
                return b64decode(inline, validate=True)
            except ValueError:
                raise AccessError(f"{self._path}: {self._at(key)}-data is no base64") from None
        path = self.file(key)
        return _bytes(path) if path else b""

    def _at(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(_FILE_MAX_BYTES + 1)
    except OSError as error:
        raise AccessError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    if len(text) > _FILE_MAX_BYTES:
        raise AccessError(f"{path}: it is larger than a mebibyte")
    return text


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode()
    except UnicodeDecodeError:
        raise AccessError(f"{path}: it is no text") from None


def _stamps(files: tuple[Path, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return what tells that a file is another one, links followed: a mounted account changes by its links."""
    stamps = []
    for file in files:
        try:
            stat = file.stat()
            stamps.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            stamps.append((0, 0, 0))
    return tuple(stamps)
