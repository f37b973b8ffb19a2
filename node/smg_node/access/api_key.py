"""API key as its owner holds it, `smg-ID-SECRET`: text form, SHA-256 of the secret, fingerprint.

The id says which key it is and is no secret; it finds the record. The secret is compared by its
digest: it has 256 random bits, so it cannot be found from a fast digest, and checking one takes a
microsecond.
"""

import re
from hashlib import blake2b
from typing import Final

PREFIX: Final = "smg-"
ID_CHARACTERS: Final = 12
SECRET_CHARACTERS: Final = 43
"""Of 62 letters and digits: 256 bits."""
ID_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
SECRET_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + ID_ALPHABET
TEXT_MAX_CHARACTERS: Final = 168
_DIGEST_BYTES: Final = 32
_PERSON: Final = b"smg api key"
_FINGERPRINT_BYTES: Final = 6
# An operator may make a key of a file by other means, so a little more is allowed than is made here.
_TEXT: Final = re.compile(r"smg-([a-z0-9]{1,32})-([A-Za-z0-9_-]{32,128})", re.ASCII)


def key_text(key_id: str, secret: str) -> str:
    """Return the key as its owner is to keep it."""
    return f"{PREFIX}{key_id}-{secret}"


def read_key_text(text: str) -> tuple[str, str] | None:
    """Return id and secret of a key, None for what is none."""
    found = _TEXT.fullmatch(text)
    return None if found is None else (found[1], found[2])


def digest_of(secret: str) -> bytes:
    """Return the 32 bytes by which a secret is recognised."""
    return blake2b(secret.encode(), digest_size=_DIGEST_BYTES, person=_PERSON).digest()


def fingerprint_of(digest: bytes) -> str:
    """Return 12 hexadecimal digits by which keys can be told apart, "" for no digest."""
    return blake2b(digest, digest_size=_FINGERPRINT_BYTES).hexdigest() if digest else ""
