"""Tokens become identities by their issuer's keys alone, and each way to cheat has its name."""

import asyncio
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.identity import AccessError, KeysWantedError
from smg_node.access.tokens.issuer import Issuer
from smg_node.access.tokens.token_authenticator import TokenAuthenticator
from smg_node.access.tokens.verified_tokens import SECRET_BYTES, VerifiedTokens
from smg_node.config.token_forms import SIGNATURES
from smg_node.core.errors import SmgError
from support.access.signed_tokens import (
    ISSUER,
    NOW_MS,
    StaticKeys,
    claims,
    encoded,
    issuer,
    key_set,
    signing_key,
)

RSA, EC, OKP = (
    signing_key("RS256", "rsa"),
    signing_key("ES256", "ec"),
    signing_key("Ed25519", "okp"),
)


class World:
    """An authenticator, its keys and its clock."""

    def __init__(self, *issuers: Issuer, keys: StaticKeys | None = None) -> None:
        self.keys = StaticKeys(corp=key_set(RSA, EC, OKP)) if keys is None else keys
        self.now_ms = NOW_MS
        self.verified = VerifiedTokens(b"s" * SECRET_BYTES)
        self.denied: set[str] = set()
        self.tokens = TokenAuthenticator(
            issuers or (issuer(),),
            self.keys,
            self.verified,
            lambda: self.now_ms,
            lambda alias, subject, issued_ms: f"{alias}/{subject}" in self.denied,
        )

    def refused(self, token: str) -> str:
        """Return the code of a refusal."""
        with pytest.raises(AccessError) as caught:
            self.tokens.identify(token)
        assert token not in str(caught.value)
        return caught.value.code


@pytest.mark.parametrize("algorithm", SIGNATURES)
def test_a_token_of_each_signature_is_somebody(algorithm: str) -> None:
    key = signing_key(algorithm, "own")
    world = World(keys=StaticKeys(corp=key_set(key)))
    who = world.tokens.identify(key.token(claims()))
    assert (who.tenant, who.role, who.subject) == ("acme", "operator", "token:corp/alice")
    assert (
        world.refused(signing_key(algorithm, "other").token(claims(), kid="own")) == "bad_signature"
    )


# ── Cheating ─────────────────────────────────────────────────────────────────


def test_no_signature_is_none() -> None:
    world = World()
    for name in ("none", "None", "NONE", ""):
        header = json.dumps({"alg": name, "kid": "rsa"}).encode()
        token = f"{encoded(header)}.{encoded(json.dumps(claims()).encode())}."
        assert world.refused(token) == ("algorithm_not_allowed" if name else "invalid_token")
    assert world.refused(RSA.token(claims()).rpartition(".")[0] + ".") == "bad_signature"


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_public_key_is_no_secret(algorithm: str) -> None:
    assert isinstance(RSA.private, rsa.RSAPrivateKey)
    public = RSA.private.public_key()
    forms = [
        public.public_bytes(encoding, form)
        for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER)
        for form in (
            serialization.PublicFormat.SubjectPublicKeyInfo,
            serialization.PublicFormat.PKCS1,
        )
    ]
    forms.append(json.dumps(RSA.public).encode())
    for secret in forms:
        header = encoded(json.dumps({"alg": algorithm, "kid": "rsa"}).encode())
        text = f"{header}.{encoded(json.dumps(claims()).encode())}"
        mac = hmac.new(secret, text.encode(), getattr(hashlib, f"sha{algorithm[2:]}")).digest()
        assert World().refused(f"{text}.{encoded(mac)}") == "algorithm_not_allowed"


def test_a_key_of_the_token_itself_is_never_taken() -> None:
    mine = signing_key("ES256", "mine")
    world = World()
    header = {"jwk": mine.public, "jku": "https://evil.example/keys", "x5u": "https://evil.example"}
    assert world.refused(mine.token(claims(), **header)) == "unknown_key"
    assert world.refused(mine.token(claims(), kid="ec", **header)) == "bad_signature"
    assert world.refused(mine.token(claims(), kid=None, **header)) == "bad_signature"


def test_an_algorithm_fits_its_key() -> None:
    world = World()
    assert world.refused(EC.token(claims(), alg="ES384")) == "algorithm_not_allowed"
    assert world.refused(EC.token(claims(), alg="Ed25519")) == "algorithm_not_allowed"
    assert world.refused(RSA.token(claims(), alg="PS256")) == "bad_signature"
    narrow = World(issuer(algorithms=("ES256",)))
    assert narrow.refused(RSA.token(claims())) == "algorithm_not_allowed"
    assert narrow.tokens.identify(EC.token(claims())).role == "operator"


def test_parts_of_two_tokens_make_none() -> None:
    one, two = EC.token(claims()), EC.token(claims(sub="bob", azp="other"))
    world = World()
    parts = [(a, b, c) for a in (one, two) for b in (one, two) for c in (one, two)]
    for a, b, c in parts:
        token = f"{a.split('.')[0]}.{b.split('.')[1]}.{c.split('.')[2]}"
        # Their heads are the same.
        if token in (one, two) or b is c:
            assert world.tokens.identify(token).expires_ms
        else:
            assert world.refused(token) == "bad_signature"


def test_an_issuer_is_known_to_the_byte() -> None:
    world = World()
    for name in (ISSUER + "/", ISSUER.upper(), ISSUER[:-1], "https://sso.example/realms"):
        assert world.refused(EC.token(claims(iss=name))) == "unknown_issuer"
        assert not world.tokens.knows(EC.token(claims(iss=name)))
    assert world.tokens.knows(EC.token(claims()))
    assert not world.tokens.knows("eyJ.eyJ.sig")


def test_a_key_of_one_issuer_is_not_anothers() -> None:
    other = issuer(alias="other", issuer="https://other.example", audiences=("smg",))
    mine, theirs = signing_key("ES256", "one"), signing_key("ES256", "two")
    keys = StaticKeys(corp=key_set(mine), other=key_set(theirs))
    world = World(issuer(), other, keys=keys)
    assert (
        world.tokens.identify(theirs.token(claims(iss=other.issuer))).subject == "token:other/alice"
    )
    assert world.refused(theirs.token(claims())) == "unknown_key"
    assert world.refused(theirs.token(claims(), kid="one")) == "bad_signature"
    same = {world.tokens.identify(one).key_id for one in (
        mine.token(claims()), theirs.token(claims(iss=other.issuer)))}  # fmt: skip
    assert len(same) == 2


def test_two_issuers_say_roles_and_tenants_in_their_own_places() -> None:
    kubernetes = issuer(
        alias="cluster",
        issuer="https://kubernetes.default.svc",
        roles="/sub",
        role_map=(("system:serviceaccount:ops:*", "operator"), ("*", "user")),
        tenant="/kubernetes.io/namespace",
        tenant_prefix="k8s.",
    )
    theirs = signing_key("RS256", "k8s")
    world = World(issuer(), kubernetes, keys=StaticKeys(corp=key_set(EC), cluster=key_set(theirs)))
    pod = {
        "iss": kubernetes.issuer,
        "sub": "system:serviceaccount:prod:web",
        "kubernetes.io": {"namespace": "prod", "serviceaccount": {"name": "web"}},
    }
    who = world.tokens.identify(theirs.token(claims(**pod), typ=None))
    assert (who.tenant, who.role) == ("k8s.prod", "user")
    assert who.subject == "token:cluster/system:serviceaccount:prod:web"
    pod["sub"] = "system:serviceaccount:ops:bot"
    assert world.tokens.identify(theirs.token(claims(**pod))).role == "operator"
    mine = world.tokens.identify(EC.token(claims(**{"kubernetes.io": {"namespace": "x"}})))
    assert (mine.tenant, mine.role) == ("acme", "operator")


def test_a_header_may_bring_a_certificate() -> None:
    assert World().tokens.identify(EC.token(claims(), x5c=["A" * 4000])).tenant == "acme"


# ── Order of the checks ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"exp": 1}, "expired_token"),
        ({"nbf": 2e9}, "token_not_yet_valid"),
        ({"aud": "account"}, "wrong_audience"),
    ],
)
def test_what_no_key_could_mend_makes_nobody_fetch(changed: dict[str, Any], code: str) -> None:
    world = World()
    assert world.refused(EC.token(claims(**changed), kid="unknown")) == code
    assert world.keys.wanted == []


def test_roles_and_tenants_are_for_proven_tokens_alone() -> None:
    world = World()
    told = claims(azp="a b")
    assert world.refused(EC.token(told)) == "tenant_not_usable"
    assert world.refused(signing_key("ES256", "x").token(told, kid="ec")) == "bad_signature"


# ── Keys that are not here ───────────────────────────────────────────────────


def test_an_unknown_key_is_asked_for_and_refused_where_none_may_be() -> None:
    world = World()
    assert world.refused(EC.token(claims(), kid="new")) == "unknown_key"
    assert world.keys.wanted == [("corp", "new")]


async def test_an_unknown_key_is_waited_for_outside() -> None:
    world = World()
    world.keys.fetching = ready = asyncio.get_running_loop().create_future()
    with pytest.raises(KeysWantedError) as caught:
        world.tokens.identify(EC.token(claims(), kid="new"))
    error = caught.value
    assert (error.issuer, error.ready, error.status, error.retry_after_s) == (
        "corp",
        ready,
        503,
        2.0,
    )
    new = signing_key("ES256", "new")
    world.keys.put("corp", key_set(new))
    world.keys.fetching = None
    assert world.tokens.identify(new.token(claims())).tenant == "acme"


async def test_a_token_without_an_id_may_be_of_a_new_key_too() -> None:
    world = World()
    world.keys.fetching = asyncio.get_running_loop().create_future()
    stranger = signing_key("ES256", "stranger").token(claims(), kid=None)
    with pytest.raises(KeysWantedError):
        world.tokens.identify(stranger)
    assert world.tokens.identify(EC.token(claims(), kid=None)).tenant == "acme"
    assert world.keys.wanted == [("corp", "")]


def test_a_wrong_signature_of_a_known_key_makes_nobody_fetch() -> None:
    world = World()
    assert world.refused(signing_key("ES256", "x").token(claims(), kid="ec")) == "bad_signature"
    assert world.keys.wanted == []


@pytest.mark.parametrize("state", ["never", "stale"])
def test_an_issuer_without_keys_is_no_fault_of_the_token(state: Any) -> None:
    world = World(keys=StaticKeys())
    world.keys.states["corp"] = state
    with pytest.raises(SmgError) as caught:
        world.tokens.identify(EC.token(claims()))
    error = caught.value
    assert (error.code, error.status, error.retry_after_s) == ("issuer_unreachable", 503, 2.0)
    assert ("too old" in error.message) is (state == "stale")


# ── Memory ───────────────────────────────────────────────────────────────────


def test_a_known_token_is_not_verified_again_until_something_changes() -> None:
    world = World()
    token = EC.token(claims())
    first = world.tokens.identify(token)
    assert world.tokens.identify(token) is first
    world.keys.put("corp", key_set(RSA))
    assert world.refused(token) == "unknown_key"
    world.keys.put("corp", key_set(EC))
    assert world.tokens.identify(token) == first
    world.now_ms = first.expires_ms
    assert world.refused(token) == "expired_token"


def test_a_denied_subject_is_refused_from_the_next_version_on() -> None:
    world = World()
    token = EC.token(claims())
    assert world.tokens.identify(token).tenant == "acme"
    world.denied.add("corp/alice")
    world.keys.version += 1
    assert world.refused(token) == "denied_token"
    assert world.tokens.identify(EC.token(claims(sub="bob"))).subject == "token:corp/bob"


def test_refused_tokens_are_not_remembered() -> None:
    world = World()
    assert world.refused(EC.token(claims(azp="a b"))) == "tenant_not_usable"
    assert len(world.verified) == 0


# ── Anything ─────────────────────────────────────────────────────────────────

TOKEN = EC.token(claims())


@given(st.integers(0, len(TOKEN) - 1), st.characters(codec="latin-1"))
def test_a_changed_character_is_a_named_refusal(place: int, other: str) -> None:
    changed = TOKEN[:place] + other + TOKEN[place + 1 :]
    if changed == TOKEN:
        return
    assert World().refused(changed) in {
        "invalid_token",
        "bad_signature",
        "unknown_issuer",
        "unknown_key",
        "expired_token",
        "token_not_yet_valid",
        "wrong_audience",
        "wrong_token_type",
        "algorithm_not_allowed",
    }


@given(st.text(max_size=300))
def test_any_text_is_a_named_refusal(text: str) -> None:
    with pytest.raises(AccessError):
        World().tokens.identify(text)


@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "jwk", "x5c", "cty"]),
        st.none() | st.text(max_size=9) | st.integers() | st.lists(st.text(max_size=3), max_size=2)
        | st.sampled_from(["RS256", "ES256", "ec", "rsa", "JWT", "HS256", "none"]),
    )
)  # fmt: skip
def test_any_header_is_somebody_or_a_named_refusal(header: dict[str, Any]) -> None:
    world = World()
    token = EC.token(claims(), **header)
    try:
        who = world.tokens.identify(token)
    except AccessError:
        return
    assert who.subject == "token:corp/alice"
    assert header.get("alg", "ES256") == "ES256"
    assert header.get("kid", "ec") in ("ec", None)
