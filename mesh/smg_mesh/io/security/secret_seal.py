"""Secret seal: secrets in shared state: all members can read them, disks and logs cannot show them.

    kind 1 | key id 4 | nonce 12 | secret, encrypted | tag 16

Nonces are chance: secrets are sealed at the rate of people, far from the 2^32 where chance repeats itself.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from cryptography.exceptions import InvalidTag

from smg_mesh.io.security.rejected import Rejected
from smg_mesh.io.security.ring_key import KEY_ID_BYTES, RingKey
from smg_mesh.io.security.secret_marks import PLAIN, SEALED

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_NONCE_AT: Final = 1 + KEY_ID_BYTES
_SECRET_AT: Final = _NONCE_AT + _NONCE_BYTES


def seal_secret(secret: bytes, key: RingKey | None, label: bytes) -> bytes:
    """Return the secret sealed with the key; without one it is only marked as plain."""
    if key is None:
        return PLAIN + secret
    nonce = secrets.token_bytes(_NONCE_BYTES)
    head = SEALED + key.id
    return head + nonce + key.secret_cipher(label).encrypt(nonce, secret, head)


def open_secret(sealed: bytes, keys: Mapping[bytes, RingKey], label: bytes) -> bytes:
    """Return the secret; `keys` are those of the ring by id, none if it is insecure. Raise `Rejected`."""
    kind = sealed[:1]
    if kind == PLAIN:
        if keys:
            raise Rejected("plain")
        return sealed[1:]
    if kind != SEALED or len(sealed) < _SECRET_AT + _TAG_BYTES:
        raise Rejected("wire")
    if not keys:
        raise Rejected("sealed")
    key = keys.get(sealed[1:_NONCE_AT])
    if key is None:
        raise Rejected("key")
    try:
        return key.secret_cipher(label).decrypt(
            sealed[_NONCE_AT:_SECRET_AT], sealed[_SECRET_AT:], sealed[:_NONCE_AT]
        )
    except InvalidTag:
        raise Rejected("tag") from None
