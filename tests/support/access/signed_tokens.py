"""Signed tokens and key sets made with `cryptography` alone, so that no library judges what it wrote itself."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.key_provider import KeyState
from smg_node.access.tokens.key_set import KeySet, read_key_set

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Claims: TypeAlias = Mapping[str, Any]

NOW_S: Final = 1_700_000_000
NOW_MS: Final = NOW_S * 1000
ISSUER: Final = "https://sso.example/realms/prod"
_HASHES: Final[Mapping[str, Callable[[], hashes.HashAlgorithm]]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_CURVES: Final = {
    "ES256": (ec.SECP256R1, "P-256", 32),
    "ES384": (ec.SECP384R1, "P-384", 48),
    "ES512": (ec.SECP521R1, "P-521", 66),
}


def encoded(raw: bytes) -> str:
    """Return base64url without padding."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def number(value: int, size: int | None = None) -> str:
    """Return a number as key sets write it."""
    return encoded(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


@dataclass(frozen=True)
class SigningKey:
    """A private key of an issuer, for one signature algorithm."""

    algorithm: str
    private: PrivateKey
    kid: str

    @property
    def public(self) -> dict[str, Any]:
        """The key as a key set publishes it, without `alg` and `use`."""
        return {**public_numbers(self.private), "kid": self.kid}

    def token(self, claims: Claims, **header: Any) -> str:
        """Return a token; `header` adds to, and with None removes from, `alg`, `kid` and `typ`."""
        whole = {"alg": self.algorithm, "kid": self.kid, "typ": "JWT", **header}
        head = {name: value for name, value in whole.items() if value is not None}
        return self.signed(json.dumps(head).encode(), json.dumps(claims).encode())

    def signed(self, header: bytes, payload: bytes) -> str:
        """Return a token of any bytes."""
        text = f"{encoded(header)}.{encoded(payload)}"
        return f"{text}.{encoded(self.sign(text.encode()))}"

    def sign(self, text: bytes) -> bytes:
        """Return the signature, as RFC 7518 and RFC 8037 write it."""
        private, algorithm = self.private, self.algorithm
        if isinstance(private, ed25519.Ed25519PrivateKey):
            return private.sign(text)
        kind = _HASHES[algorithm[2:]]()
        if isinstance(private, ec.EllipticCurvePrivateKey):
            r, s = decode_dss_signature(private.sign(text, ec.ECDSA(kind)))
            size = _CURVES[algorithm][2]
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        if algorithm.startswith("PS"):
            mask = padding.PSS(padding.MGF1(kind), salt_length=kind.digest_size)
            return private.sign(text, mask, kind)
        return private.sign(text, padding.PKCS1v15(), kind)


def public_numbers(private: PrivateKey) -> dict[str, str]:
    """Return type and numbers of the public half of a key."""
    if isinstance(private, rsa.RSAPrivateKey):
        public = private.public_key().public_numbers()
        return {"kty": "RSA", "n": number(public.n), "e": number(public.e)}
    if isinstance(private, ed25519.Ed25519PrivateKey):
        raw = private.public_key().public_bytes_raw()
        return {"kty": "OKP", "crv": "Ed25519", "x": encoded(raw)}
    point = private.public_key().public_numbers()
    name, size = next(
        (name, size) for curve, name, size in _CURVES.values() if type(private.curve) is curve
    )
    return {"kty": "EC", "crv": name, "x": number(point.x, size), "y": number(point.y, size)}


@cache
def signing_key(algorithm: str, kid: str = "one", bits: int = 2048) -> SigningKey:
    """Return the same key for the same words, made with the first call."""
    private: PrivateKey
    if algorithm in ("Ed25519", "EdDSA"):
        private = ed25519.Ed25519PrivateKey.generate()
    elif algorithm in _CURVES:
        private = ec.generate_private_key(_CURVES[algorithm][0]())
    else:
        private = rsa.generate_private_key(65537, bits)
    return SigningKey(algorithm, private, kid)


def key_set(*keys: object) -> bytes:
    """Return a key set; a signing key becomes its public half."""
    listed = [key.public if isinstance(key, SigningKey) else key for key in keys]
    return json.dumps({"keys": listed}).encode()


def issuer(**changed: Any) -> Issuer:
    """Return an issuer whose tokens are for `smg`, with a tenant in `azp` and the roles of Keycloak."""
    told: dict[str, Any] = {
        "alias": "corp",
        "issuer": ISSUER,
        "audiences": ("smg",),
        "roles": "/realm_access/roles",
        "role_map": (("gateway-admin", "admin"), ("gateway-ops", "operator"), ("*", "user")),
        "tenant": "/azp",
    }
    return Issuer(**{**told, **changed})


def claims(**changed: Any) -> dict[str, Any]:
    """Return what a good token of that issuer claims; None removes a claim."""
    told: dict[str, Any] = {
        "iss": ISSUER,
        "aud": "smg",
        "sub": "alice",
        "azp": "acme",
        "iat": NOW_S - 10,
        "exp": NOW_S + 600,
        "realm_access": {"roles": ["offline_access", "gateway-ops"]},
    }
    told.update(changed)
    return {name: value for name, value in told.items() if value is not None}


class StaticKeys:
    """Keys in memory, and futures of fetches that a test ends."""

    def __init__(self, **sets: bytes) -> None:
        self.version = 0
        self.sets: dict[str, KeySet] = {name: read_key_set(one) for name, one in sets.items()}
        self.states: dict[str, KeyState] = {}
        self.fetching: asyncio.Future[None] | None = None
        self.wanted: list[tuple[str, str]] = []

    def keys(self, alias: str) -> KeySet | None:
        """Return the set of an issuer."""
        return self.sets.get(alias)

    def state(self, alias: str) -> KeyState:
        """Return what the test said, else what follows from there being a set."""
        return self.states.get(alias, "fresh" if alias in self.sets else "never")

    def want(self, alias: str, kid: str) -> "asyncio.Future[None] | None":
        """Return the fetch that the test lets be under way, if any."""
        self.wanted.append((alias, kid))
        return self.fetching

    def put(self, alias: str, document: bytes) -> None:
        """Exchange a set."""
        self.sets[alias] = read_key_set(document)
        self.version += 1
