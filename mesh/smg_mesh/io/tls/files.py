"""Certificate files of an operator: read at start, and anew when they change.

The files are looked at when a connection is made, at most once a second. Certificate and key are replaced
one after the other: what does not fit together, or does not carry the names, is said once and not taken,
and the old material stays in force until the files are right.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from smg_mesh.config import TlsFiles
from smg_mesh.io.errors import MeshError
from smg_mesh.io.tls.material import Material
from smg_mesh.io.tls.names import dns_name, mesh_name

LOOK_INTERVAL_S: Final = 1.0
FILE_BYTES_MAX: Final = 1_048_576

_Stamp: TypeAlias = tuple[tuple[int, int, int], ...]
_log: Final = logging.getLogger("smg_mesh.tls")


class FileMaterial:
    """Certificate, key and authority from three files; MeshError if they will not do at the start."""

    def __init__(
        self, files: TlsFiles, *, name: str, label: str, monotonic_s: Callable[[], float]
    ) -> None:
        self._files = files
        self._names = (dns_name(name), mesh_name(label))
        self._monotonic_s = monotonic_s
        self._looked_s = monotonic_s()
        # The stamp is taken first: what changes while it is read is seen as a change the next time.
        self._stamp = self._seen()
        self._material = self._load()

    def read(self) -> Material:
        """Return what is in force: the same object as long as the files are the same, or wrong."""
        now_s = self._monotonic_s()
        if now_s - self._looked_s < LOOK_INTERVAL_S:
            return self._material
        self._looked_s = now_s
        stamp = self._seen()
        if stamp != self._stamp:
            self._stamp = stamp
            self._take()
        return self._material

    def _take(self) -> None:
        try:
            self._material = self._load()
        except MeshError as error:
            _log.warning("kept the old certificates of the mesh: %s", error)
        else:
            _log.info("took new certificates of the mesh from %s", self._files.certificate)

    def _seen(self) -> _Stamp | None:
        """Return what tells one version of the files from another; None if one is missing."""
        try:
            found = [path.stat() for path in self._paths()]
        except OSError:
            return None
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)

    def _paths(self) -> tuple[Path, Path, Path]:
        return (self._files.certificate, self._files.key, self._files.authority)

    def _load(self) -> Material:
        try:
            certificate, key, authority = (_content(path) for path in self._paths())
        except OSError as error:
            raise MeshError(f"cannot read {error.filename}: {error.strerror}") from error
        self._check(certificate, key, authority)
        return Material(certificate=certificate, key=key, authorities=authority)

    def _check(self, certificate: bytes, key: bytes, authority: bytes) -> None:
        files = self._files
        try:
            leaf = x509.load_pem_x509_certificate(certificate)
        except ValueError as error:
            raise MeshError(f"{files.certificate} holds no PEM certificate") from error
        try:
            x509.load_pem_x509_certificates(authority)
        except ValueError as error:
            raise MeshError(f"{files.authority} holds no PEM certificate") from error
        try:
            private = load_pem_private_key(key, password=None)
        except (ValueError, TypeError) as error:
            raise MeshError(f"{files.key} holds no PEM private key without a password") from error
        form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        if private.public_key().public_bytes(*form) != leaf.public_key().public_bytes(*form):
            raise MeshError(f"{files.key} is not the key of {files.certificate}")
        names = _dns_names(leaf)
        if missing := [name for name in self._names if name not in names]:
            raise MeshError(
                f"{files.certificate} lacks the DNS name {' and '.join(missing)}"
                f" (subject alternative names: {', '.join(names) or 'none'})"
            )


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX)


def _dns_names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [name.lower() for name in extension.value.get_values_for_type(x509.DNSName)]
