"""Idempotency key of a request, with a digest of its body, so that a repeat is not executed twice."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from smg_node.core.errors import invalid
from smg_node.core.json_cursor import quoted

KEY_HEADER: Final = "idempotency-key"
REPLAYED_HEADER: Final = "idempotent-replayed"
"""Says, on an answer, that it is that of an earlier request."""
KEY_CHARACTERS_MAX: Final = 128
DIGEST_BYTES: Final = 16
APPROVALS: Final = "mcpa:"
"""What keys of answers to approvals begin with, and those of clients may not."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key, and a digest of all of its request."""

    key: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class PriorResult:
    """Response that was made under the key before."""

    response_id: str


def idempotency_key(spelled: str, *, method: str, path: str, body: bytes) -> IdempotencyKey:
    """Return the key of a request; INVALID_REQUEST for an invalid one. `body` is the body, byte for
    byte.
    """
    if not (
        1 <= len(spelled) <= KEY_CHARACTERS_MAX and spelled.isascii() and spelled.isprintable()
    ):
        raise invalid(
            f"the header {KEY_HEADER} must have 1 to {KEY_CHARACTERS_MAX} printable characters of ASCII;"
            f" got {quoted(spelled)}",
            None,
            "invalid_idempotency_key",
        )
    if spelled.startswith(APPROVALS):
        raise invalid(
            f"the header {KEY_HEADER} must not begin with {APPROVALS!r}",
            None,
            "invalid_idempotency_key",
        )
    digest = blake2b(digest_size=DIGEST_BYTES, person=b"smg idempotency")
    for part in (method.encode(), path.encode(), body):
        # With its length before it, no part can be taken for the beginning of the next.
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return IdempotencyKey(spelled, digest.digest())
