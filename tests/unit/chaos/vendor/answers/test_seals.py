"""Seals: what was sealed is known again by every process with the key, and nothing else is."""

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.vendor.answers.seals import Seals

KEY = b"key"


@given(st.text(max_size=50), st.text(max_size=50), st.text(max_size=50), st.integers(0, 100))
def test_a_seal_holds_for_its_content_alone(
    content: str, nonce: str, other: str, padding: int
) -> None:
    sealed = Seals(KEY, padding).seal("thinking", "anthropic", content, nonce)
    another = Seals(KEY)
    assert another.holds(sealed, "thinking", "anthropic", content)
    assert another.holds(sealed, "thinking", "anthropic", other) == (other == content)
    assert not another.holds(sealed, "redacted", "anthropic", content)
    assert not another.holds(sealed, "thinking", "google", content)
    assert not Seals(b"other").holds(sealed, "thinking", "anthropic", content)


@given(st.data())
def test_any_changed_byte_breaks_it(data: st.DataObject) -> None:
    raw = bytearray(b64decode(Seals(KEY, 20).seal("k", "s", "content", "n")))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    assert not Seals(KEY).holds(b64encode(raw).decode(), "k", "s", "content")


@given(st.text(max_size=80))
def test_garbage_is_no_seal(garbage: str) -> None:
    assert not Seals(KEY).holds(garbage, "k", "s", "")


@pytest.mark.parametrize("padding", [0, 1, 64_000])
def test_padding_makes_it_that_much_longer(padding: int) -> None:
    sealed = Seals(KEY, padding).seal("k", "s", "content", "n")
    assert len(b64decode(sealed)) == 29 + padding
    assert Seals(KEY).holds(sealed, "k", "s", "content")


def test_the_url_safe_alphabet_without_padding_is_the_same_seal() -> None:
    seals = Seals(KEY)
    sealed = next(
        one
        for one in (seals.seal("k", "s", "", str(n)) for n in range(99))
        if "+" in one and "/" in one
    )
    assert seals.holds(sealed.replace("+", "-").replace("/", "_").rstrip("="), "k", "s", "")
