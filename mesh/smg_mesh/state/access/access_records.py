"""Access records: the keys of one issuer, and the denial of one subject, as all nodes know them."""

from hashlib import blake2b
from typing import Final

import msgspec

DIGEST_BYTES: Final = 16


def digest_of(document: bytes) -> bytes:
    """Return by what a set of keys is told from another one."""
    return blake2b(document, digest_size=DIGEST_BYTES).digest()


class IssuerKeySet(msgspec.Struct, frozen=True):
    """The keys of one issuer, a JSON document, and when by a node's wall clock they were fetched.

    `source` tells from where, `node` by which node; `max_age_ms` is how long the issuer lets them be kept, -1 if it
    did not say.
    """

    alias: str
    document: bytes
    fetched_ms: int
    max_age_ms: int = -1
    source: str = ""
    node: str = ""

    @property
    def digest(self) -> bytes:
        """16 bytes that are another for other keys."""
        return digest_of(self.document)


class Denial(msgspec.Struct, frozen=True):
    """One subject of one issuer. Times are Unix milliseconds; `before_ms` 0: whenever a token was issued."""

    alias: str
    subject: str
    until_ms: int
    before_ms: int = 0
    made_ms: int = 0

    def refuses(self, issued_ms: int, now_ms: int) -> bool:
        """Return whether a token of the subject that was issued then is refused now; 0: it does not say when."""
        if now_ms >= self.until_ms:
            return False
        return not self.before_ms or issued_ms < self.before_ms
