import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.access.api_key import (
    ID_ALPHABET,
    ID_CHARACTERS,
    SECRET_ALPHABET,
    SECRET_CHARACTERS,
    TEXT_MAX_CHARACTERS,
    digest_of,
    fingerprint_of,
    key_text,
    read_key_text,
)
from smg_node.system_clock import secret_text

SECRET = "S" * SECRET_CHARACTERS


def test_a_key_says_its_id_and_its_secret() -> None:
    assert read_key_text(key_text("k3x9q0a7m2bd", SECRET)) == ("k3x9q0a7m2bd", SECRET)
    assert read_key_text("smg-bootstrap-" + "a_-" * 20) == ("bootstrap", "a_-" * 20)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "smg-",
        "smg--" + SECRET,
        "smg-k1-",
        "smg-k1-short",
        "smg-K1-" + SECRET,
        "SMG-k1-" + SECRET,
        "sk-k1-" + SECRET,
        "smg-k1-" + SECRET + "\n",
        " smg-k1-" + SECRET,
        "smg-k1-" + SECRET + "ü",
        "smg-k1-" + "x" * 129,
        "smg-" + "k" * 33 + "-" + SECRET,
    ],
)
def test_what_is_no_key_is_none(text: str) -> None:
    assert read_key_text(text) is None


@given(st.text(max_size=TEXT_MAX_CHARACTERS + 5))
def test_any_text_is_read_or_none(text: str) -> None:
    found = read_key_text(text)
    assert found is None or key_text(*found) == text


def test_made_keys_can_be_read_and_no_two_are_the_same() -> None:
    made = {
        key_text(
            secret_text(ID_CHARACTERS, ID_ALPHABET), secret_text(SECRET_CHARACTERS, SECRET_ALPHABET)
        )
        for _ in range(200)
    }
    assert len(made) == 200
    assert all(read_key_text(text) is not None for text in made)
    assert all(len(text) <= TEXT_MAX_CHARACTERS for text in made)
    assert len(SECRET_ALPHABET) ** SECRET_CHARACTERS > 1 << 255


def test_a_digest_tells_secrets_apart_and_a_fingerprint_says_nothing_of_it() -> None:
    rng = random.Random(3)
    secrets = ["".join(rng.choices(SECRET_ALPHABET, k=SECRET_CHARACTERS)) for _ in range(100)]
    digests = {digest_of(secret) for secret in secrets}
    assert len(digests) == 100
    assert {len(digest) for digest in digests} == {32}
    digest = digest_of(SECRET)
    assert len(fingerprint_of(digest)) == 12
    assert fingerprint_of(digest) not in digest.hex()
    assert fingerprint_of(b"") == ""
