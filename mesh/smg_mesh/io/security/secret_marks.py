"""Secret marks: how a secret in shared state begins: plain, or sealed
with which key; needs no ciphers.
"""

from typing import Final

PLAIN: Final = b"\0"
SEALED: Final = b"\1"
KEY_ID_BYTES: Final = 4


def sealed_with(sealed: bytes) -> str:
    """Return the fingerprint of the key that a secret is sealed with, empty if it is plain or none at all."""
    if sealed[:1] != SEALED:
        return ""
    return sealed[1 : 1 + KEY_ID_BYTES].hex()
