"""Key sets are read key by key: what cannot be used is named, and spoils nothing."""

import contextlib
import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, x25519
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.tokens.key_set import (
    KEYS_MAX,
    KeySetError,
    SkippedKey,
    read_key_set,
)
from smg_node.config.token_forms import SIGNATURES
from support.access.signed_tokens import encoded, key_set, number, signing_key

GOOD = signing_key("ES256", "good")


def brainpool() -> dict[str, str]:
    point = ec.generate_private_key(ec.BrainpoolP256R1()).public_key().public_numbers()
    return {
        "kty": "EC",
        "crv": "BP-256",
        "x": number(point.x, 32),
        "y": number(point.y, 32),
        "kid": "brainpool",
    }


def agreement() -> dict[str, str]:
    raw = x25519.X25519PrivateKey.generate().public_key().public_bytes_raw()
    return {"kty": "OKP", "crv": "X25519", "x": encoded(raw), "kid": "agreement"}


def reason(one: Any) -> str:
    """Return why a key is skipped, beside a good one that never is."""
    found = read_key_set(key_set(one, GOOD))
    assert [key.kid for key in found.keys] == ["good"]
    (skipped,) = found.skipped
    return skipped.reason


@pytest.mark.parametrize("algorithm", SIGNATURES)
def test_every_signature_is_verified_by_its_key_and_by_no_other(algorithm: str) -> None:
    key, other = signing_key(algorithm, "own"), signing_key(algorithm, "other")
    (mine,) = read_key_set(key_set(key)).candidates("own", algorithm)
    signature = key.sign(b"text")
    assert mine.verify(algorithm, b"text", signature)
    assert not mine.verify(algorithm, b"texT", signature)
    assert not mine.verify(algorithm, b"text", other.sign(b"text"))
    assert not mine.verify(algorithm, b"text", signature[:-1])
    assert not mine.verify(algorithm, b"text", signature + b"\0")
    assert not mine.verify(algorithm, b"text", b"")
    assert not mine.verify("HS256", b"text", signature)
    assert not mine.verify("none", b"text", b"")


def test_a_set_of_seven_keeps_the_one_that_can_be_used() -> None:
    post_quantum = {"kty": "AKP", "alg": "ML-DSA-44", "pub": encoded(b"x" * 1312), "kid": "akp"}
    symmetric = {"kty": "oct", "k": encoded(b"k" * 32), "kid": "secret"}
    untyped = {"kid": "untyped", "n": "AQAB"}
    weak = signing_key("RS256", "weak", 1024)
    odd = (post_quantum, agreement(), brainpool(), symmetric, untyped, weak)
    found = read_key_set(key_set(*odd, GOOD))
    assert [key.kid for key in found.keys] == ["good"]
    assert found.skipped == (
        SkippedKey("akp", "AKP ML-DSA-44", "unsupported_type"),
        SkippedKey("agreement", "OKP X25519", "unsupported_curve"),
        SkippedKey("brainpool", "EC BP-256", "unsupported_curve"),
        SkippedKey("secret", "oct", "symmetric"),
        SkippedKey("untyped", "", "no_type"),
        SkippedKey("weak", "RSA", "too_weak"),
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"use": "enc"}, "not_for_signatures"),
        ({"use": 7}, "not_for_signatures"),
        ({"key_ops": ["sign"]}, "not_for_signatures"),
        ({"key_ops": "verify"}, "not_for_signatures"),
        ({"alg": "ES384"}, "unsupported_algorithm"),
        ({"alg": "HS256"}, "unsupported_algorithm"),
        ({"alg": "none"}, "unsupported_algorithm"),
        ({"alg": ["ES256"]}, "unsupported_algorithm"),
        ({"alg": None}, "unsupported_algorithm"),
        ({"crv": "P-384"}, "broken"),
        ({"crv": "secp256k1"}, "unsupported_curve"),
        ({"crv": ["P-256"]}, "unsupported_curve"),
        ({"crv": None}, "unsupported_curve"),
        ({"d": "AQAB"}, "private"),
        ({"k": "AQAB"}, "private"),
        ({"kid": 7}, "broken"),
        ({"kid": "x" * 513}, "broken"),
        ({"x": 7}, "broken"),
        ({"x": None}, "broken"),
        ({"x": ""}, "broken"),
        ({"x": "AQAB"}, "broken"),
        ({"x": "ü" * 43}, "broken"),
        ({"x": "A" * 101}, "broken"),
        ({"kty": "RSA"}, "broken"),
        ({"kty": ""}, "no_type"),
        ({"kty": 7}, "no_type"),
        ({"kty": "ec"}, "unsupported_type"),
    ],
)
def test_a_key_that_says_something_odd_of_itself_is_skipped(
    changed: dict[str, Any], said: str
) -> None:
    assert reason({**signing_key("ES256", "odd").public, **changed}) == said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"n": ""}, "too_weak"),
        ({"n": "A" * 342}, "too_weak"),
        ({"n": "_" * 2000}, "too_large"),
        ({"n": "!" * 342}, "too_weak"),
        ({"e": "_" * 13}, "too_large"),
        ({"e": ""}, "broken"),
        ({"e": "AQ"}, "broken"),
        ({"e": "Ag"}, "broken"),
        ({"e": "AA"}, "broken"),
    ],
)
def test_a_weak_slow_or_broken_rsa_key_is_skipped(changed: dict[str, Any], said: str) -> None:
    assert reason({**signing_key("RS256", "odd").public, **changed}) == said


def test_an_even_modulus_is_no_modulus() -> None:
    public = signing_key("RS256", "odd").public
    raw = bytearray(urlsafe_b64decode(public["n"] + "=="))
    raw[-1] &= 0xFE
    assert reason({**public, "n": encoded(bytes(raw))}) == "broken"


@pytest.mark.parametrize("one", [None, 7, "text", [], True])
def test_what_is_no_object_is_no_key(one: Any) -> None:
    assert reason(one) == "not_an_object"


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"keys": null}',
        b'{"keys": {}}',
        b"\xff",
        b"{" * 100_000,
        b'{"keys": [1e400]}',
        b" " * 1_048_577,
    ],
)
def test_a_document_that_is_no_set_is_refused_by_name(document: bytes) -> None:
    with pytest.raises(KeySetError) as caught:
        read_key_set(document)
    assert "\n" not in str(caught.value)


def test_an_empty_set_is_a_set() -> None:
    found = read_key_set(key_set())
    assert found.keys == ()
    assert found.skipped == ()
    assert not found.candidates("", "ES256")


def test_a_key_of_one_algorithm_is_for_that_alone() -> None:
    key = signing_key("RS256", "one")
    any_of_them = read_key_set(key_set(key))
    assert any_of_them.candidates("one", "PS512")
    alone = read_key_set(key_set({**key.public, "alg": "RS256"}))
    assert alone.candidates("one", "RS256")
    assert not alone.candidates("one", "PS256")
    older = read_key_set(key_set({**signing_key("Ed25519").public, "alg": "EdDSA"}))
    assert older.candidates("one", "Ed25519")


def test_a_token_without_an_id_is_tried_with_four_keys_that_fit() -> None:
    keys = [signing_key("ES256", f"k{one}") for one in range(6)]
    found = read_key_set(key_set(signing_key("RS256"), *keys))
    assert [key.kid for key in found.candidates("", "ES256")] == ["k0", "k1", "k2", "k3"]
    assert [key.kid for key in found.candidates("k5", "ES256")] == ["k5"]
    assert not found.candidates("k9", "ES256")
    assert "k5" in found
    assert "k9" not in found


def test_two_keys_of_one_id_are_both_tried() -> None:
    found = read_key_set(key_set(signing_key("ES256", "x"), signing_key("Ed25519", "x")))
    assert found.candidates("x", "ES256")
    assert found.candidates("x", "Ed25519")


def test_a_set_is_read_up_to_a_limit() -> None:
    found = read_key_set(key_set(*[{}] * KEYS_MAX, GOOD, GOOD))
    assert found.keys == ()
    assert found.skipped[-1] == SkippedKey("good", "EC P-256", "too_many")
    assert len(found.skipped) == KEYS_MAX + 1


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=400),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
MEMBERS = st.dictionaries(
    st.sampled_from(["kty", "kid", "alg", "use", "key_ops", "crv", "n", "e", "x", "y"]),
    JUNK
    | st.sampled_from(["RSA", "EC", "OKP", "P-256", "P-521", "Ed25519", "AQAB", "sig", "verify"]),
)


@given(st.lists(JUNK | MEMBERS, max_size=4))
def test_any_members_give_keys_or_reasons_and_keep_the_good_one(listed: list[Any]) -> None:
    text = json.dumps({"keys": [*listed, GOOD.public]}).encode()
    try:
        found = read_key_set(text)
    except KeySetError:
        # Numbers that are none, as Python writes them.
        return
    assert found.keys[-1].kid == "good"
    assert len(found.keys) + len(found.skipped) == len(listed) + 1


@given(st.binary(max_size=64))
def test_any_bytes_are_a_set_or_a_named_error(document: bytes) -> None:
    with contextlib.suppress(KeySetError):
        read_key_set(document)


@given(st.sampled_from(SIGNATURES), st.binary(max_size=300), st.binary(max_size=40))
def test_any_bytes_are_no_signature(algorithm: str, signature: bytes, text: bytes) -> None:
    (mine,) = read_key_set(key_set(signing_key(algorithm, "own"))).candidates("own", algorithm)
    assert not mine.verify(algorithm, text, signature)
