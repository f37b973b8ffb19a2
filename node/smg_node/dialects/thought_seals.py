"""Thought seals: signatures of thoughts, which prove one that is shown, or carry one that is not.

A client sends the model's thoughts back with its next request. Where it was shown none, the signature
holds the thought itself: compressed, and sealed with the cluster's keyring together with tenant and
model, so that every node can open it and no other tenant's request can use it. A node without a
keyring cannot encrypt: there it is only encoded.
"""

import base64
import binascii
import zlib
from hashlib import blake2b
from typing import Final, Protocol

import msgspec

CARRIED_MAX_BYTES: Final = 262_144
"""Of a longer thought the middle is left out of its seal."""
LEFT_OUT: Final = "\n[…]\n"
_PREFIX: Final = "smg1."
SEALED: Final = "smg1s."
"""How a signature that carries its thought begins; base64 follows."""
_DIGEST_BYTES: Final = 24
_LEVEL: Final = 6


class Vault(Protocol):
    """Encryption that only nodes of this cluster can undo, as far as it has keys."""

    def seal(self, secret: str) -> bytes:
        """Return it sealed."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any node sealed; None for anything else."""
        ...


class PlainVault:
    """Vault of a node without a keyring: it encodes only."""

    def seal(self, secret: str) -> bytes:
        """Return its bytes."""
        return secret.encode()

    def open_secret(self, sealed: bytes) -> str | None:
        """Return the text of those bytes; None if they are none."""
        try:
            return sealed.decode()
        except UnicodeDecodeError:
            return None


class _Carried(msgspec.Struct, frozen=True, array_like=True, tag="thought"):
    tenant: str
    model: str
    packed: bytes


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Carried).decode


class ThoughtSeals:
    """Makes and opens signatures with a node's encryption."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def sign(self, thought: str, *, tenant: str, model: str) -> str:
        """Return the signature of a thought that its client was shown."""
        digest = blake2b(digest_size=_DIGEST_BYTES)
        for part in (tenant, model, thought):
            raw = part.encode("utf-8", "replace")
            digest.update(len(raw).to_bytes(8, "little") + raw)
        return _PREFIX + base64.b64encode(digest.digest()).decode()

    def seal(self, thought: str, *, tenant: str, model: str) -> str:
        """Return a signature that carries the thought."""
        packed = zlib.compress(_shortened(thought.encode("utf-8", "replace")), _LEVEL)
        sealed = self._vault.seal(_encode(_Carried(tenant, model, packed)).decode())
        return SEALED + base64.b64encode(sealed).decode()

    def opened(self, signature: str, *, tenant: str, model: str) -> str | None:
        """Return the thought that a signature carries; None for any other text, or one sealed for
        somebody else.
        """
        if not signature.startswith(SEALED) or not signature.isascii():
            return None
        try:
            sealed = base64.b64decode(signature[len(SEALED) :], validate=True)
        except binascii.Error:
            return None
        said = self._vault.open_secret(sealed)
        if said is None:
            return None
        try:
            found = _decode(said)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None
        if (found.tenant, found.model) != (tenant, model):
            return None
        return _unpacked(found.packed)


def _shortened(raw: bytes) -> bytes:
    if len(raw) <= CARRIED_MAX_BYTES:
        return raw
    half = (CARRIED_MAX_BYTES - len(LEFT_OUT.encode())) // 2
    head = raw[:half].decode("utf-8", "ignore")
    tail = raw[-half:].decode("utf-8", "ignore")
    return (head + LEFT_OUT + tail).encode()


def _unpacked(packed: bytes) -> str | None:
    """Return the text; None for what is no whole text of at most the size that is sealed."""
    unpacking = zlib.decompressobj()
    try:
        raw = unpacking.decompress(packed, CARRIED_MAX_BYTES + 1)
        return raw.decode() if unpacking.eof and len(raw) <= CARRIED_MAX_BYTES else None
    except (zlib.error, UnicodeDecodeError):
        return None
