"""TLS options: which certificates a listener shows and whom it trusts, as plain values; filled from settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

ClientCertificates: TypeAlias = Literal["off", "ask", "require"]
"""Whether clients show a certificate: never asked, asked and free to have none, needed."""
FIRST: Final = "default"
"""Name of the pair that is shown to whoever names no host, or one that no pair has."""


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """Paths of a PEM certificate chain and of its private key."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Options of TLS. Times in seconds.

    `more` are further pairs by name, chosen by the host that a client names. `client_authority` is a
    file of the authorities whose client certificates are believed, `client_revoked` one of revoked
    certificates (CRL); each empty if there is none.
    """

    pair: CertificatePair
    more: Mapping[str, CertificatePair] = field(default_factory=dict)
    client: ClientCertificates = "off"
    client_authority: str = ""
    client_revoked: str = ""
    handshake_s: float = 10.0
    handshakes_max: int = 512
    hsts_s: int = 0
    """How long browsers are to come by https only; 0: they are told nothing."""

    @property
    def pairs(self) -> Mapping[str, CertificatePair]:
        """Every pair by name, the first one first."""
        return {FIRST: self.pair, **self.more}

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of all files, in a fixed order."""
        pairs = [path for pair in self.pairs.values() for path in (pair.certificate, pair.key)]
        return (*pairs, *filter(None, (self.client_authority, self.client_revoked)))
