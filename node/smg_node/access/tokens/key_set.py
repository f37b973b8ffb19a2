"""Key set of an issuer (RFC 7517): its public keys, read one by one, and why others of it cannot be used.

A key that this node cannot use does not spoil the others: sets hold keys for encryption, of curves and kinds of
signature that are not built here, and now and then a broken one. What a key says of itself beyond its numbers is
judged here; the library sees the numbers alone, and is imported with the first set. Pure but for that.
"""

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from smg_node.config.token_forms import SIGNATURES

if TYPE_CHECKING:
    from joserfc.jwa import JWSAlgModel
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    LibraryKey: TypeAlias = RSAKey | ECKey | OKPKey

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
    "too_many",
]
DOCUMENT_MAX_BYTES: Final = 1_048_576
KEYS_MAX: Final = 256
TRIED_MAX: Final = 4
"""So many keys are tried for a token that names none."""
RSA_MIN_BITS: Final = 2048
RSA_MAX_BITS: Final = 8192
"""Checking a signature by a larger key takes milliseconds."""
_EXPONENT_MAX: Final = 12
"""Characters of 64 bits; real exponents have 17."""
_MODULUS_MAX: Final = RSA_MAX_BITS // 6 + 2
_COORDINATE_MAX: Final = 100
_KEY_ID_MAX: Final = 512
_SHOWN_MAX: Final = 64
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"})
_RSA: Final = tuple(name for name in SIGNATURES if name.startswith(("RS", "PS")))
_CURVES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("Ed25519", "EdDSA"),
}
_NUMBERS: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}


class VerificationKey:
    """A public key that tokens may be signed with."""

    __slots__ = ("_key", "_signatures", "algorithms", "kid")

    def __init__(self, kid: str, algorithms: tuple[str, ...], key: "LibraryKey") -> None:
        self.kid = kid
        """Its id, "" for none."""
        self.algorithms = algorithms
        """Signatures it fits."""
        self._key = key
        self._signatures = _library().signatures

    def verify(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Whether `signature` is this key's under `signed`; False for an algorithm that does not fit."""
        if algorithm not in self.algorithms:
            return False
        return self._signatures[algorithm].verify(signed, signature, self._key)


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
    """The keys of one issuer."""

    def __init__(self, keys: Sequence[VerificationKey], skipped: Sequence[SkippedKey]) -> None:
        self.keys = tuple(keys)
        self.skipped = tuple(skipped)
        self._named: dict[str, list[VerificationKey]] = {}
        for key in keys:
            self._named.setdefault(key.kid, []).append(key)

    def candidates(self, kid: str, algorithm: str) -> Sequence[VerificationKey]:
        """Return the keys a token of this `kid` and algorithm may be signed with: those of that id that fit; any that
        fit for a token that names none; four at most.
        """
        named = self._named.get(kid, ()) if kid else self.keys
        return [key for key in named if algorithm in key.algorithms][:TRIED_MAX]

    def __contains__(self, kid: object) -> bool:
        return kid in self._named


class _SkippedError(Exception):
    """A key cannot be used."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason)
        self.reason = reason


def read_key_set(document: bytes) -> KeySet:
    """Return the usable keys of a set, and why others are not; KeySetError for what is no set."""
    if len(document) > DOCUMENT_MAX_BYTES:
        raise KeySetError(f"the key set is larger than {DOCUMENT_MAX_BYTES} bytes")
    try:
        found = msgspec.json.decode(document)
    except (ValueError, RecursionError):
        raise KeySetError("the key set is not JSON") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise KeySetError("the key set is not an object with a list of keys")
    # Also for an empty one: whoever reads it beside the loop wants it loaded.
    _library()
    keys: list[VerificationKey] = []
    skipped: list[SkippedKey] = []
    for one in listed[:KEYS_MAX]:
        try:
            keys.append(_read_key(one))
        except _SkippedError as error:
            skipped.append(SkippedKey(*_names_of(one), error.reason))
    skipped += [SkippedKey(*_names_of(one), "too_many") for one in listed[KEYS_MAX:][:1]]
    return KeySet(keys, skipped)


def _read_key(one: object) -> VerificationKey:
    if not isinstance(one, dict):
        raise _SkippedError("not_an_object")
    kind = one.get("kty")
    if not isinstance(kind, str) or not kind:
        raise _SkippedError("no_type")
    algorithms = _algorithms_of(one, kind)
    kid = one.get("kid", "")
    if not isinstance(kid, str) or len(kid) > _KEY_ID_MAX:
        raise _SkippedError("broken")
    numbers = {name: one.get(name) for name in _NUMBERS[kind]}
    if not all(isinstance(value, str) and value.isascii() for value in numbers.values()):
        raise _SkippedError("broken")
    return VerificationKey(kid, algorithms, _imported(kind, numbers))


def _algorithms_of(one: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    """Return the signatures that a key is for, by what it says of itself."""
    if kind == "oct":
        raise _SkippedError("symmetric")
    if kind not in _NUMBERS:
        raise _SkippedError("unsupported_type")
    if not _PRIVATE.isdisjoint(one):
        # Whoever has read the set can sign with it.
        raise _SkippedError("private")
    if one.get("use", "sig") != "sig":
        raise _SkippedError("not_for_signatures")
    operations = one.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        raise _SkippedError("not_for_signatures")
    curve = one.get("crv")
    fits = _RSA if kind == "RSA" else _CURVES.get((kind, curve if isinstance(curve, str) else ""))
    if fits is None:
        raise _SkippedError("unsupported_curve")
    if "alg" not in one:
        return fits
    algorithm = one["alg"]
    if algorithm not in fits:
        raise _SkippedError("unsupported_algorithm")
    # The two names of one signature.
    return fits if kind == "OKP" else (algorithm,)


def _imported(kind: str, numbers: Mapping[str, Any]) -> "LibraryKey":
    """Return the key of these numbers."""
    library = _library()
    try:
        if kind == "RSA":
            _check_size(numbers["n"], numbers["e"])
        elif any(len(value) > _COORDINATE_MAX for value in numbers.values()):
            raise _SkippedError("broken")
        return library.types[kind].import_key({"kty": kind, **numbers})
    except (ValueError, TypeError, KeyError, library.error):
        raise _SkippedError("broken") from None


def _check_size(modulus: str, exponent: str) -> None:
    """Return if an RSA key is neither too weak nor too slow. Before the library sees it, which only warns of the first."""
    if len(modulus) > _MODULUS_MAX or len(exponent) > _EXPONENT_MAX:
        raise _SkippedError("too_large")
    value = int.from_bytes(urlsafe_b64decode(modulus + "=" * (-len(modulus) % 4)))
    if value.bit_length() < RSA_MIN_BITS:
        raise _SkippedError("too_weak")
    if value.bit_length() > RSA_MAX_BITS:
        raise _SkippedError("too_large")
    if value % 2 == 0:
        # No product of primes; the library takes it.
        raise _SkippedError("broken")


class _Library(NamedTuple):
    """What of the library is used."""

    types: "Mapping[str, type[LibraryKey]]"
    signatures: "Mapping[str, JWSAlgModel]"
    error: type[Exception]


@cache
def _library() -> _Library:
    # Imported here and nowhere else: 110 ms and 17 MB that nobody without an issuer pays.
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey
    from joserfc.jws import JWSRegistry

    # Taken from its table: asking its registry for EdDSA warns each time.
    signatures = {name: JWSRegistry.algorithms[name] for name in SIGNATURES}
    return _Library({"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}, signatures, JoseError)


def _names_of(one: object) -> tuple[str, str]:
    """Return id and kind of a key as tables show them."""
    if not isinstance(one, dict):
        return "", ""
    said = [one.get(name) for name in ("kty", "crv", "alg")]
    kind = " ".join(text for text in said if isinstance(text, str))
    kid = one.get("kid")
    return _printable(kid if isinstance(kid, str) else ""), _printable(kind)


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text[:_SHOWN_MAX])
