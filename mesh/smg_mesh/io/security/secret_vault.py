"""Secret vault: secrets of shared state for writers and users: text
in, document bytes out, and back.

Without a mesh, or in an insecure one, a secret is only marked as plain: what keeps it then are the
permissions of the file it is in. With a keyring it is sealed with the primary key. What is not, because it was
written before (alone, or under an older key), can still be read as long as its key is there, and is
*renewed* meanwhile: sealed again with the primary key.
"""

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from smg_mesh.io.security.rejected import Rejected
from smg_mesh.io.security.secret_marks import PLAIN, sealed_with

_log: Final = logging.getLogger("smg_mesh.secrets")


class Seals(Protocol):
    """Sealing and opening of secrets; `Keyring` fits."""

    @property
    def primary(self) -> str:
        """Fingerprint of the key that seals, empty without any."""
        ...

    def seal_secret(self, secret: bytes) -> bytes:
        """Return it sealed, or marked as plain."""
        ...

    def open_secret(self, sealed: bytes) -> bytes:
        """Return what was sealed; raise `Rejected`."""
        ...

    def carried_keys(self) -> tuple[bytes, ...]:
        """Return the keys for what clients carry, the one that seals first."""
        ...


class _Plain:
    """No keys at all."""

    primary = ""

    def seal_secret(self, secret: bytes) -> bytes:
        return PLAIN + secret

    def open_secret(self, sealed: bytes) -> bytes:
        raise Rejected("sealed")

    def carried_keys(self) -> tuple[bytes, ...]:
        return ()


class Vault:
    """Vault that keeps secrets plain until it is given `seals`."""

    def __init__(self) -> None:
        self._seals: Seals = _Plain()

    def connect(self, seals: Seals) -> None:
        """Seal from now on."""
        self._seals = seals

    def seal(self, secret: str) -> bytes:
        """Return the secret for a document."""
        return self._seals.seal_secret(secret.encode())

    def open(self, sealed: bytes) -> str | None:
        """Return the secret; None if none of the keys here opens it."""
        try:
            return self._open(sealed).decode()
        except (Rejected, UnicodeDecodeError) as error:
            # Without the secret and without the bytes: a log is no place for either.
            _log.debug("a secret cannot be opened here: %s", error)
            return None

    def carried_keys(self) -> tuple[bytes, ...]:
        """Return the keys for what clients carry, as `carried_secrets` takes them."""
        return self._seals.carried_keys()

    def renew(self, sealed: bytes) -> bytes | None:
        """Return the secret sealed as a new one would be; None if it is, or if it cannot be opened."""
        if sealed_with(sealed) == self._seals.primary:
            return None
        try:
            return self._seals.seal_secret(self._open(sealed))
        except Rejected:
            return None

    def to_renew(self, secrets: Iterable[bytes]) -> int:
        """Return how many of these are not as a new one would be."""
        return sum(sealed_with(sealed) != self._seals.primary for sealed in secrets)

    def _open(self, sealed: bytes) -> bytes:
        if sealed[:1] == PLAIN:
            # Also where there are keys: it was disclosed by whoever wrote it, and is renewed soon.
            return sealed[1:]
        return self._seals.open_secret(sealed)
