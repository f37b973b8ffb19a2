"""Credentials for gRPC that follow their source: new connections use what is in force when they are made."""

import threading
from collections.abc import Callable
from typing import Protocol, cast

import grpc

from smg_mesh.io.tls.material import Material, MaterialSource
from smg_mesh.io.tls.names import dns_name, mesh_name


class Credentials(Protocol):
    """Credentials of this node: proof of its name, and checks of the names of others."""

    @property
    def name(self) -> str:
        """The node's."""
        ...

    @property
    def label(self) -> str:
        """The mesh's."""
        ...

    @property
    def secure(self) -> bool:
        """Whether the other end of a stream proves who it is."""
        ...

    def version(self) -> int:
        """Return the number of what is in force: another number, other credentials."""
        ...

    def server(self) -> grpc.ServerCredentials | None:
        """Return credentials that follow every change by themselves; None: plain text."""
        ...

    def channel(self) -> grpc.ChannelCredentials | None:
        """Return the credentials in force now; None: plain text."""
        ...

    def expected(self, name: str | None) -> str:
        """Return the name that the certificate of `name` carries, or (None) that of any member."""
        ...


class PlainCredentials:
    """None at all; labels and names are then only what each side says."""

    secure = False

    def __init__(self, *, name: str, label: str) -> None:
        self.name = name
        self.label = label

    def version(self) -> int:
        """Return always the same number."""
        return 1

    def server(self) -> None:
        """Return None: plain text."""

    def channel(self) -> None:
        """Return None: plain text."""

    def expected(self, name: str | None) -> str:
        """Return what a certificate would carry."""
        return mesh_name(self.label) if name is None else dns_name(name)


class TlsCredentials:
    """Mutual TLS from a source that may change at any time.

    gRPC asks for the server's part from threads of its own, so one lock guards the source.
    """

    secure = True

    def __init__(self, source: MaterialSource, *, name: str, label: str) -> None:
        self.name = name
        self.label = label
        self._source = source
        self._lock = threading.Lock()
        self._material = source.read()
        self._version = 1

    def version(self) -> int:
        """See `Credentials`; looks at the source."""
        return self._current()[0]

    def server(self) -> grpc.ServerCredentials:
        """See `Credentials`."""
        version, material = self._current()
        # "Or None" is in the library's documentation and missing in the published stubs.
        follow = cast(Callable[[], grpc.ServerCertificateConfiguration], self._follow(version))
        return grpc.dynamic_ssl_server_credentials(
            _server_part(material), follow, require_client_authentication=True
        )

    def channel(self) -> grpc.ChannelCredentials:
        """See `Credentials`."""
        _, material = self._current()
        return grpc.ssl_channel_credentials(
            material.authorities, material.key, material.certificate
        )

    def expected(self, name: str | None) -> str:
        """See `Credentials`."""
        return mesh_name(self.label) if name is None else dns_name(name)

    def _current(self) -> tuple[int, Material]:
        with self._lock:
            material = self._source.read()
            if material is not self._material:
                self._material = material
                self._version += 1
            return self._version, self._material

    def _follow(self, version: int) -> Callable[[], grpc.ServerCertificateConfiguration | None]:
        """Return what gRPC calls before every handshake: the new part, or None if it is the same."""
        last = version

        def changed() -> grpc.ServerCertificateConfiguration | None:
            nonlocal last
            now, material = self._current()
            if now == last:
                return None
            last = now
            return _server_part(material)

        return changed


def _server_part(material: Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.certificate)], material.authorities
    )
