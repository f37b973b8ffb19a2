"""Seals: signatures of thoughts and calls, made with a key so that every process with that key can check them.

    seal = base64(version | nonce | MAC(kind, scope, nonce, padding, content) | padding)

The content is what the seal stands on: changed text under an old seal is found, like a changed seal.
"""

import binascii
import hmac
from base64 import b64decode, b64encode
from hashlib import blake2b
from typing import Final

_VERSION: Final = b"\x53"
_NONCE_BYTES: Final = 12
_MAC_BYTES: Final = 16
_PLAIN_ALPHABET: Final = str.maketrans("-_", "+/")
_HEAD_BYTES: Final = len(_VERSION) + _NONCE_BYTES + _MAC_BYTES


class Seals:
    """Makes and checks seals; `padding_bytes` makes each as large as some vendors' are."""

    def __init__(self, key: bytes, padding_bytes: int = 0) -> None:
        self._key = blake2b(key, digest_size=32).digest()
        self._padding_bytes = padding_bytes

    def seal(self, kind: str, scope: str, content: str, nonce: str) -> str:
        """Return a seal of `content`; the same `nonce` gives the same one."""
        mark = blake2b(nonce.encode(), digest_size=_NONCE_BYTES).digest()
        padding = (mark * (self._padding_bytes // _NONCE_BYTES + 1))[: self._padding_bytes]
        mac = self._mac(kind, scope, mark, padding, content)
        return b64encode(_VERSION + mark + mac + padding).decode()

    def holds(self, sealed: str, kind: str, scope: str, content: str) -> bool:
        """Return whether this is a seal of that content, made with this key."""
        # Google's own client writes bytes in the URL-safe alphabet, which its API takes as well.
        plain = sealed.translate(_PLAIN_ALPHABET)
        try:
            raw = b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        except (binascii.Error, ValueError):
            return False
        if len(raw) < _HEAD_BYTES or not raw.startswith(_VERSION):
            return False
        mark = raw[1 : 1 + _NONCE_BYTES]
        mac, padding = raw[1 + _NONCE_BYTES : _HEAD_BYTES], raw[_HEAD_BYTES:]
        return hmac.compare_digest(mac, self._mac(kind, scope, mark, padding, content))

    def _mac(self, kind: str, scope: str, mark: bytes, padding: bytes, content: str) -> bytes:
        sealed = blake2b(key=self._key, digest_size=_MAC_BYTES)
        for part in (kind.encode(), scope.encode(), mark, padding, content.encode()):
            sealed.update(len(part).to_bytes(4, "big") + part)
        return sealed.digest()
