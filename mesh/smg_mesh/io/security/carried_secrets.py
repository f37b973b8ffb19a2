"""Carried secrets: text that clients carry and hand back, which only nodes of the cluster can read.

    kind 1 | key id 4 | salt 16 | nonce 12 | secret, encrypted | tag 16

Their keys are derived from the ring's for this purpose alone, so that a process of a node can be given them
without the ring. Each text has a key of its own, derived once more with its salt: they are sealed at the
rate of requests, and nonces by chance under one key would be used up. Without keys a text is only marked
as plain.
"""

import secrets
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from smg_mesh.io.security.secret_marks import KEY_ID_BYTES, PLAIN, SEALED

KEY_BYTES: Final = 32
_DIGESTS: Final = b"smg digest"
"""Tells these from the keys that are derived of the same one."""
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_SALT_AT: Final = 1 + KEY_ID_BYTES
_NONCE_AT: Final = _SALT_AT + _SALT_BYTES
_SECRET_AT: Final = _NONCE_AT + _NONCE_BYTES


class CarriedSecrets:
    """Seals and opens texts with `keys()`: each an id and a key in one, the one that seals first; none without a
    keyring.
    """

    def __init__(self, keys: Callable[[], Sequence[bytes]]) -> None:
        self._keys = keys

    def seal(self, secret: str) -> bytes:
        """Return a text that any node of the cluster opens; without keys it is only encoded."""
        keys = self._keys()
        if not keys:
            return PLAIN + secret.encode()
        # Imported here: it takes some megabytes, and a cluster without keys needs none of it.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        drawn = secrets.token_bytes(_SALT_BYTES + _NONCE_BYTES)
        head = SEALED + keys[0][:KEY_ID_BYTES] + drawn
        cipher = AESGCM(_own_key(keys[0], drawn[:_SALT_BYTES]))
        return head + cipher.encrypt(drawn[_SALT_BYTES:], secret.encode(), head)

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any node sealed with a key that is in the ring; None for anything else."""
        keys = self._keys()
        try:
            if sealed[:1] == PLAIN:
                return None if keys else sealed[1:].decode()
            return self._opened(sealed, keys)
        except UnicodeDecodeError:
            return None

    def digest(self, text: bytes, size_bytes: int) -> bytes:
        """Return a digest that is the same at all nodes whose first key is the same, and says nothing to others; without
        keys it is the same everywhere.
        """
        keys = self._keys()
        secret = keys[0][KEY_ID_BYTES:] if keys else b""
        return blake2b(text, key=secret, digest_size=size_bytes, person=_DIGESTS).digest()

    def _opened(self, sealed: bytes, keys: Sequence[bytes]) -> str | None:
        if sealed[:1] != SEALED or len(sealed) < _SECRET_AT + _TAG_BYTES:
            return None
        named = sealed[1:_SALT_AT]
        key = next((one for one in keys if one[:KEY_ID_BYTES] == named), None)
        if key is None:
            return None
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        cipher = AESGCM(_own_key(key, sealed[_SALT_AT:_NONCE_AT]))
        try:
            head, nonce = sealed[:_SECRET_AT], sealed[_NONCE_AT:_SECRET_AT]
            return cipher.decrypt(nonce, sealed[_SECRET_AT:], head).decode()
        except InvalidTag:
            return None


def _own_key(key: bytes, salt: bytes) -> bytes:
    return blake2b(salt, key=key[KEY_ID_BYTES:], digest_size=KEY_BYTES).digest()
