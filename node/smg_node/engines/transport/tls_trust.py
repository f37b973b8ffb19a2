"""TLS trust: certificate authorities that engines are checked against, and the client certificate
shown to them.

The files are looked at with each new connection. Certificate and key are replaced one after the other: while
they do not fit together, or cannot be read, connections are made with those before, which is logged once.
"""

import logging
import os
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

ALPN: Final = "h2"
"""What gRPC over TLS is called; who does not say it speaks something else."""
HTTP_ALPN: Final = "http/1.1"
_Stamp: TypeAlias = tuple[tuple[int, int, int], ...]
_log: Final = logging.getLogger("smg_node.engines")


class Trust:
    """Certificates in PEM files, first read with the first secure connection: 20 ms, and a megabyte.

    Without `authority` and `more` of them the machine's own authorities are trusted; `certificate` and `key` are
    shown to servers that ask for a client certificate, and come together. What cannot be read at first is an
    OSError.
    """

    def __init__(
        self,
        authority: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        more: Sequence[str] = (),
    ) -> None:
        assert (certificate is None) == (key is None)
        self._authorities: Final = [
            *([] if authority is None else [authority]),
            *map(Path, more),
        ]
        self._certificate: Final = certificate
        self._key: Final = key
        self._guard: Final = threading.Lock()
        """Connections are made by several threads."""
        self._kept: Final[dict[str, tuple[_Stamp | None, ssl.SSLContext]]] = {}
        """By what is spoken: the context, and which version of the files it was made of."""
        self._said = ""

    @property
    def named(self) -> bool:
        """Whether there are files, and not only what this machine trusts."""
        return bool(self._authorities or self._certificate)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context that checks a gRPC server, the same for all until the files change. Call it in a
        thread.
        """
        return self._latest(ALPN)

    def http_context(self) -> ssl.SSLContext:
        """Return the one that checks a server of HTTP, as `context` does."""
        return self._latest(HTTP_ALPN)

    def files(self) -> tuple[bytes, bytes | None, bytes | None]:
        """Return the authorities, our key and our certificate as PEM."""
        if self._authorities:
            authorities = b"\n".join(path.read_bytes() for path in self._authorities)
        else:
            trusted = self.context().get_ca_certs(binary_form=True)
            authorities = "".join([ssl.DER_cert_to_PEM_cert(one) for one in trusted]).encode()
        if self._certificate is None or self._key is None:
            return authorities, None, None
        return authorities, self._key.read_bytes(), self._certificate.read_bytes()

    def _latest(self, spoken: str) -> ssl.SSLContext:
        with self._guard:
            # Seen first: what changes while it is read is another version the next time.
            stamp, kept = self._seen(), self._kept.get(spoken)
            if kept is not None and stamp is not None and kept[0] == stamp:
                return kept[1]
            try:
                context = self._load(spoken)
            except OSError as error:
                if kept is None:
                    raise
                self._complain(str(error))
                return kept[1]
            self._kept[spoken] = (stamp, context)
            if kept is not None:
                self._said = ""
                _log.info("took new certificates of engine.tls")
            return context

    def _complain(self, complaint: str) -> None:
        if complaint != self._said:
            self._said = complaint
            _log.warning("kept the old certificates of engine.tls: %s", complaint)

    def _seen(self) -> _Stamp | None:
        """Return what tells one version of the files from another; None if one is missing."""
        paths = [path for path in (self._certificate, self._key) if path is not None]
        try:
            found = [os.stat(path) for path in (*self._authorities, *paths)]
        except OSError:
            return None
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)

    def _load(self, spoken: str) -> ssl.SSLContext:
        authorities = self._authorities
        context = ssl.create_default_context(cafile=authorities[0] if authorities else None)
        for path in authorities[1:]:
            context.load_verify_locations(path)
        context.set_alpn_protocols((spoken,))
        if self._certificate is not None:
            context.load_cert_chain(self._certificate, self._key, password=self._no_password)
        return context

    def _no_password(self) -> NoReturn:
        # Without this the library would ask on the terminal, and the node would wait for ever.
        raise OSError(f"{self._key} needs a password, which a node has not")
