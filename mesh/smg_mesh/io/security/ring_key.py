"""Ring key: one key of the ring, and the keys derived from it (keyed BLAKE2b).

A key of the ring never encrypts anything itself. From it, by keyed BLAKE2b, come the keys that do:
one per sender and boot for packets, one for secrets, one for what clients carry. A leaked derived key reveals no other.
"""

import base64
import binascii
import secrets
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
KEY_ID_BYTES: Final = 4
_PACKET: Final = b"smg mesh packet"
_SECRET: Final = b"smg mesh secret"
_CARRIED: Final = b"smg mesh carried"


@dataclass(frozen=True, slots=True)
class RingKey:
    """32 bytes of chance that every member knows; never shown."""

    secret: bytes = field(repr=False)
    id: bytes = field(init=False, compare=False)
    """The first 4 bytes of the key's BLAKE2b: what packets say in the clear."""

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(self.secret)}")
        # Frozen, and read for every packet.
        object.__setattr__(self, "id", blake2b(self.secret).digest()[:KEY_ID_BYTES])

    @property
    def fingerprint(self) -> str:
        """The id as 8 hexadecimal digits: what people are shown, and may use in commands."""
        return self.id.hex()

    def packet_cipher(self, label: bytes, sender_and_boot: bytes) -> AESGCM:
        """Return the cipher of one life of one sender, in the cluster of that label."""
        derived = blake2b(sender_and_boot, key=self.secret, digest_size=KEY_BYTES, person=_PACKET)
        # Of fixed length, and therefore first: the rest can be nothing but the label.
        derived.update(label)
        return AESGCM(derived.digest())

    def secret_cipher(self, label: bytes) -> AESGCM:
        """Return the cipher for secrets in the state of the cluster of that label."""
        derived = blake2b(label, key=self.secret, digest_size=KEY_BYTES, person=_SECRET)
        return AESGCM(derived.digest())

    def carried_key(self, label: bytes) -> bytes:
        """Return this key's id, and behind it the key for what clients carry, in the cluster of that label."""
        derived = blake2b(label, key=self.secret, digest_size=KEY_BYTES, person=_CARRIED)
        return self.id + derived.digest()


def make_key() -> str:
    """Return a new key as a line of a key file."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def parse_key(text: str) -> RingKey:
    """Return the key that `text` says in base64 or hexadecimal; ValueError, which does not quote it."""
    text = text.strip()
    try:
        secret = bytes.fromhex(text) if len(text) == 2 * KEY_BYTES else _base64(text)
    except (ValueError, binascii.Error) as error:
        raise ValueError("neither base64 nor hexadecimal") from error
    return RingKey(secret)


def _base64(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)
