"""Foreign key: one that another gateway made, recognised by a digest of all of it; its id follows from that digest.

    digest = BLAKE2b-256(SHA-256(key))        id = f + 15 letters and digits of BLAKE2b-128(digest)

Other gateways keep the SHA-256 of their keys, so keys come from there without anybody having them. That SHA-256 opens
nothing: who knows it cannot say a key whose SHA-256 it is. A key that somebody thought up can be found from a digest
by trying; so short ones are refused. Pure.
"""

import re
from base64 import b32encode
from hashlib import blake2b, sha256
from typing import Final

from smg_node.access.api_key import PREFIX

CHARACTERS_MIN: Final = 16
"""A shorter key is guessed in days."""
CHARACTERS_ADVISED: Final = 32
"""A shorter key may be, if it was not made by chance alone."""
CHARACTERS_MAX: Final = 1_024
SHA256_BYTES: Final = 32
_DIGEST_BYTES: Final = 32
_PERSON: Final = b"smg foreign key"
"""Another one than that of our own keys: no secret of ours has the digest of a foreign key."""
_ID_PERSON: Final = b"smg foreign id"
_ID_CHARACTERS: Final = 15
_ID_PREFIX: Final = "f"
_TOKEN: Final = re.compile(r"ey[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", re.ASCII)
_TEXT: Final = re.compile(r"[!-~]+", re.ASCII)


def sha256_of(key: str) -> bytes:
    """Return the SHA-256 of a key as a header carries it."""
    return sha256(key.encode("utf-8", "surrogateescape")).digest()


def foreign_digest(key_sha256: bytes) -> bytes:
    """Return the 32 bytes by which a foreign key is recognised, from its SHA-256."""
    return blake2b(key_sha256, digest_size=_DIGEST_BYTES, person=_PERSON).digest()


def foreign_id(digest: bytes) -> str:
    """Return the id of the foreign key with that digest; no key of ours has one of that length by chance."""
    short = blake2b(digest, digest_size=16, person=_ID_PERSON).digest()
    return _ID_PREFIX + b32encode(short).decode("ascii").lower()[:_ID_CHARACTERS]


def may_be_foreign(credential: str) -> bool:
    """Return whether a credential may be a foreign key: it is no key of ours and no signed token."""
    return not credential.startswith(PREFIX) and not _TOKEN.fullmatch(credential)


def why_no_foreign_key(text: str) -> str:
    """Return why a text cannot be a foreign key, "" if it can; never a part of it."""
    if len(text) < CHARACTERS_MIN:
        return f"a key of {len(text)} characters can be guessed: {CHARACTERS_MIN} at least"
    if len(text) > CHARACTERS_MAX:
        return f"a key has at most {CHARACTERS_MAX} characters"
    if not _TEXT.fullmatch(text):
        return "a key is of printable ASCII without blanks, as a header carries it"
    if text.startswith(PREFIX):
        return f"a key that begins with {PREFIX} is taken for one that was made here"
    if not may_be_foreign(text):
        return "this is a signed token, and no key"
    return ""
