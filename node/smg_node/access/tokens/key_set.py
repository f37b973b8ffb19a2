"""Key set of an issuer (RFC 7517): its public keys, read one by one, and why others of it cannot be used.

A key that this node cannot use does not spoil the others: sets hold keys for encryption, of curves and kinds of
signature that are not built here, and now and then a broken one. Pure but for the library's import, at the first set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

SkipReason: TypeAlias = Literal[
    "not_an_object",
    "no_type",
    "unsupported_type",
    "unsupported_curve",
    "unsupported_algorithm",
    "symmetric",
    "private",
    "not_for_signatures",
    "too_weak",
    "too_large",
    "broken",
    "same_id",
    "too_many",
]


class VerificationKey(Protocol):
    """A public key that tokens may be signed with."""

    kid: str
    """Its id, "" for none."""
    algorithms: tuple[str, ...]
    """Signatures it fits."""

    def verify(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Whether `signature` is this key's under `signed`; False for an algorithm that does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class SkippedKey:
    """A key of a set that cannot be used. `kid` is printable and short, "" for none."""

    kid: str
    kind: str
    """Type and curve or algorithm, as the set has them; printable and short."""
    reason: SkipReason


class KeySetError(ValueError):
    """A document is no key set at all; the message says why, in one line and without its content."""


class KeySet:
    """The keys of one issuer. Equal documents make equal sets."""

    def __init__(self, keys: Sequence[VerificationKey], skipped: Sequence[SkippedKey]) -> None:
        self.keys = tuple(keys)
        self.skipped = tuple(skipped)

    def candidates(self, kid: str, algorithm: str) -> Sequence[VerificationKey]:
        """Return the keys a token of this `kid` and algorithm may be signed with: the one of that id if it fits; at
        most four that fit for a token that names none; empty if there is none.
        """
        named = [key for key in self.keys if not kid or key.kid == kid]
        return [key for key in named if algorithm in key.algorithms][:4]

    def __contains__(self, kid: object) -> bool:
        return any(key.kid == kid for key in self.keys)
