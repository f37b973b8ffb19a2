"""Signed tokens benchmark (`smg-chaos signed-tokens`): CPU time of finding the identity behind a token, beside PyJWT.

A *new* token is taken apart, its signature verified and its claims turned into an identity; PyJWT verifies the same
token with the same checks of issuer, audience and time, and makes no identity of it. A *known* token is one that was
verified before: what each further connection of its client costs. Rows take turns.
"""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Annotated, Any, Final

import typer
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.key_provider import KeyState
from smg_node.access.tokens.key_set import KeySet, read_key_set
from smg_node.access.tokens.token_authenticator import TokenAuthenticator
from smg_node.access.tokens.verified_tokens import SECRET_BYTES, VerifiedTokens

RATIO_MAX: Final = 1.2
"""Of what PyJWT takes, where there is such a goal."""
KNOWN_MAX_US: Final = 5.0
GOALS: Final = frozenset({"RS256", "ES256"})
ALGORITHMS: Final = ("RS256", "PS256", "ES256", "Ed25519")
_ISSUER: Final = "https://sso.example/realms/prod"
_AUDIENCE: Final = "smg"
_KID: Final = "2026-11"
_BURST: Final = 25
_NOW_S: Final = 1_800_000_000
_UNKNOWN_TO_PYJWT: Final = {"Ed25519": "EdDSA"}
"""Names of signatures that PyJWT has another one for: its tokens carry that one."""


class _Keys:
    """The keys of one issuer; a greater `version` makes every token a new one."""

    def __init__(self, keys: KeySet) -> None:
        self.version = 0
        self._keys: Final = keys

    def keys(self, _alias: str) -> KeySet:
        return self._keys

    def state(self, _alias: str) -> KeyState:
        return "fresh"

    def want(self, _alias: str, _kid: str) -> None:
        return None


class Scene:
    """One token, judged again and again."""

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm
        self._sign, public = _key(algorithm)
        self._public = {**public, "kid": _KID, "use": "sig"}
        self._keys = _Keys(read_key_set(json.dumps({"keys": [self._public]}).encode()))
        issuer = Issuer(
            "corp",
            _ISSUER,
            (_AUDIENCE,),
            "/realm_access/roles",
            (("gateway-admin", "admin"), ("*", "user")),
            "/azp",
        )
        verified = VerifiedTokens(bytes(SECRET_BYTES))
        self._tokens = TokenAuthenticator((issuer,), self._keys, verified, lambda: _NOW_S * 1000)
        self.token = self._made(algorithm)
        self._theirs = self._pyjwt()

    def new_us(self) -> float:
        """Return the CPU time of judging a token for the first time."""

        def judge() -> None:
            self._keys.version += 1
            self._tokens.identify(self.token)

        return _microseconds(judge)

    def known_us(self) -> float:
        """Return the CPU time of judging a token that was verified before."""
        self._tokens.identify(self.token)
        return _microseconds(lambda: self._tokens.identify(self.token))

    def pyjwt_us(self) -> float | None:
        """Return what PyJWT takes; None where it is not installed."""
        return None if self._theirs is None else _microseconds(self._theirs)

    def _made(self, algorithm: str) -> str:
        """Return a token such as Keycloak's, of about 800 bytes."""
        header = {"alg": algorithm, "typ": "JWT", "kid": _KID}
        claims = {
            "exp": _NOW_S + 600,
            "iat": _NOW_S - 10,
            "jti": "0b6e2a3f-8f0e-4c2a-9d55-2b6d7c1f3a10",
            "iss": _ISSUER,
            "aud": [_AUDIENCE, "account"],
            "sub": "6d1c5e0a-1b1f-4d0e-9a52-7c8e3c9f4b21",
            "typ": "Bearer",
            "azp": "acme",
            "realm_access": {"roles": ["offline_access", "uma_authorization", "gateway-user"]},
            "scope": "openid profile email",
            "preferred_username": "alice",
        }
        text = ".".join(_encoded(json.dumps(part).encode()) for part in (header, claims))
        return f"{text}.{_encoded(self._sign(text.encode()))}"

    def _pyjwt(self) -> Callable[[], object] | None:
        try:
            # Not a dependency: what this is measured beside is there where tests are.
            import jwt
        except ImportError:
            return None
        name = _UNKNOWN_TO_PYJWT.get(self.algorithm, self.algorithm)
        token, key = self._made(name), jwt.PyJWK.from_dict({**self._public, "alg": name})
        ahead_s = _NOW_S - time.clock_gettime(time.CLOCK_REALTIME)

        def judge() -> object:
            return jwt.decode(
                token,
                key,
                algorithms=[name],
                audience=_AUDIENCE,
                issuer=_ISSUER,
                # It has a clock of its own.
                leeway=abs(ahead_s) + 3600,
                options={"require": ["exp"]},
            )

        return judge


def _microseconds(judge: Callable[[], object]) -> float:
    start_ns = time.thread_time_ns()
    for _ in range(_BURST):
        judge()
    return (time.thread_time_ns() - start_ns) / 1e3 / _BURST


def _key(algorithm: str) -> tuple[Callable[[bytes], bytes], Mapping[str, str]]:
    """Return how a new key signs, and its public numbers."""
    sha = hashes.SHA256()
    if algorithm == "Ed25519":
        edwards = ed25519.Ed25519PrivateKey.generate()
        x = edwards.public_key().public_bytes_raw()
        return edwards.sign, {"kty": "OKP", "crv": "Ed25519", "x": _encoded(x)}
    if algorithm == "ES256":
        curve = ec.generate_private_key(ec.SECP256R1())
        point = curve.public_key().public_numbers()
        numbers = {"x": _number(point.x, 32), "y": _number(point.y, 32)}

        def sign(text: bytes) -> bytes:
            pair = decode_dss_signature(curve.sign(text, ec.ECDSA(sha)))
            return b"".join(one.to_bytes(32, "big") for one in pair)

        return sign, {"kty": "EC", "crv": "P-256", **numbers}
    private = rsa.generate_private_key(65537, 2048)
    public = private.public_key().public_numbers()
    numbers = {"n": _number(public.n, 256), "e": _number(public.e, 3)}
    padded: padding.AsymmetricPadding = padding.PKCS1v15()
    if algorithm == "PS256":
        padded = padding.PSS(padding.MGF1(sha), salt_length=32)
    return lambda text: private.sign(text, padded, sha), {"kty": "RSA", **numbers}


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _number(value: int, size: int) -> str:
    return _encoded(value.to_bytes(size, "big"))


def measure(algorithms: Sequence[str], *, rounds: int) -> list[dict[str, Any]]:
    """Return a row for each algorithm: medians over the rounds, in which all take turns."""
    scenes = [Scene(algorithm) for algorithm in algorithms]
    spent: list[dict[str, list[float]]] = [
        {"new_us": [], "known_us": [], "pyjwt_us": []} for _ in scenes
    ]
    for number in range(rounds + 1):
        for scene, times in zip(scenes, spent, strict=True):
            found = {
                "new_us": scene.new_us(),
                "pyjwt_us": scene.pyjwt_us(),
                "known_us": scene.known_us(),
            }
            for name, microseconds in found.items():
                if number and microseconds is not None:
                    times[name].append(microseconds)
    return [_row(scene, times) for scene, times in zip(scenes, spent, strict=True)]


def _row(scene: Scene, times: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    found = {name: median(several) if several else None for name, several in times.items()}
    new, theirs, known = found["new_us"], found["pyjwt_us"], found["known_us"]
    assert new is not None
    assert known is not None
    ratio = None if theirs is None else new / theirs
    has_goal = scene.algorithm in GOALS and ratio is not None
    return {
        "algorithm": scene.algorithm,
        "bytes": len(scene.token),
        **found,
        "ratio": ratio,
        "kept": known <= KNOWN_MAX_US and (not has_goal or (ratio or 0.0) <= RATIO_MAX),
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as text."""
    lines = ["CPU µs of a token: new, the same in PyJWT (ratio), known from before"]
    for row in rows:
        theirs = "not installed"
        if row["ratio"] is not None:
            theirs = f"{row['pyjwt_us']:7.1f} ({row['ratio']:4.2f})"
        lines.append(
            f"  {row['algorithm']:8} {row['bytes']:5} bytes {row['new_us']:7.1f}, {theirs}, {row['known_us']:5.2f}"
            f"{'' if row['kept'] else ' MISSED'}"
        )
    return "\n".join(lines)


def signed_tokens(
    rounds: Annotated[int, typer.Option(help="rounds in which all rows take turns", min=1)] = 21,
    as_json: Annotated[bool, typer.Option("--json", help="print the figures as JSON")] = False,
) -> None:
    """Measure what judging a signed token costs, beside PyJWT where it is installed; exits 1 if a goal is missed."""
    rows = measure(ALGORITHMS, rounds=rounds)
    print(json.dumps(rows, indent=2) if as_json else table(rows))
    if not all(row["kept"] for row in rows):
        raise typer.Exit(1)


app: Final = typer.Typer(add_completion=False)
app.command(name="signed-tokens")(signed_tokens)
