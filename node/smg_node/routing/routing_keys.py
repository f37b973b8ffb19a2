"""Routing keys: 8-byte digests of keys and prompt prefixes, the same on every node and in every
version. Pure.
"""

from array import array
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from smg_node.routing.policy import Asked

KEY_BYTES_MAX: Final = 256
"""A routing key names a user or a session; more than that is a mistake."""
PREFIX_CHARACTERS: Final = 1024
"""Stands for 256 tokens where nobody counts them."""


def key_digest(key: str, *, model: str, tenant: str = "") -> bytes:
    """Return the digest of a tenant's routing key for a model. Lengths keep the parts apart."""
    whole = f"{len(tenant)}:{tenant}{len(model)}:{model}{key}"
    # A client's key may hold what is no Unicode; it still has to be the same key on every node.
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def sticky_id(key: str, *, model: str, tenant: str = "") -> str:
    """Return the 16 hex digits under which the cluster knows a routing key."""
    return key_digest(key, model=model, tenant=tenant).hex()


def prefix_digest(asked: Asked, tokens: int) -> bytes:
    """Return the digest of the first `tokens` tokens of a prompt, or of its first 1,024 characters."""
    total = blake2b(asked.model.encode("utf-8", "surrogatepass"), digest_size=8)
    if asked.ids:
        total.update(b"\0ids\0")
        total.update(_packed(asked.ids[:tokens]))
    else:
        total.update(b"\0text\0")
        total.update(asked.text[:PREFIX_CHARACTERS].encode("utf-8", "surrogatepass"))
    return total.digest()


def _packed(ids: Sequence[int]) -> "array[int]":
    return ids if isinstance(ids, array) else array("I", ids)
