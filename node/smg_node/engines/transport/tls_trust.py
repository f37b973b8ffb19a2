"""TLS trust: certificate authorities that engines are checked against, and the client certificate
shown to them.
"""

import ssl
from pathlib import Path
from typing import Final

ALPN: Final = "h2"
"""What gRPC over TLS is called; who does not say it speaks something else."""


class Trust:
    """Certificates in PEM files, read once, with the first secure connection: 20 ms, and a megabyte.

    Without `authority` the machine's own authorities are trusted; `certificate` and `key` are shown
    to servers that ask for a client certificate, and come together. What cannot be read is an
    OSError.
    """

    def __init__(
        self,
        authority: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        assert (certificate is None) == (key is None)
        self._authority = authority
        self._certificate = certificate
        self._key = key
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the TLS context that checks a server; the same for all. Call it in a thread."""
        if self._context is None:
            context = ssl.create_default_context(cafile=self._authority)
            context.set_alpn_protocols((ALPN,))
            if self._certificate is not None:
                context.load_cert_chain(self._certificate, self._key)
            self._context = context
        return self._context

    def files(self) -> tuple[bytes, bytes | None, bytes | None]:
        """Return the authorities, our key and our certificate as PEM."""
        if self._authority is not None:
            authorities = self._authority.read_bytes()
        else:
            trusted = self.context().get_ca_certs(binary_form=True)
            authorities = "".join([ssl.DER_cert_to_PEM_cert(one) for one in trusted]).encode()
        if self._certificate is None or self._key is None:
            return authorities, None, None
        return authorities, self._key.read_bytes(), self._certificate.read_bytes()
