"""Opaque envelopes: what one issuer wants back, whole after any way, and nothing for any other text."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.opaque_envelope import ENVELOPE_MAX, PREFIX, Envelope, pack, unpack

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_opaques = st.lists(st.builds(Opaque, _texts, _texts, _texts, _texts), max_size=3).map(tuple)
ONE = Opaque("google", "signature", "c2ln", "call_1")


@given(_opaques, _texts, _texts)
def test_what_is_packed_is_unpacked(opaque: tuple[Opaque, ...], thought: str, place: str) -> None:
    packed = pack(opaque, thought, place)
    assert packed.isascii()
    assert unpack(packed) == Envelope(opaque, thought, place)


@given(
    st.text()
    | st.text().map(lambda text: PREFIX + text)
    | st.binary().map(lambda raw: PREFIX + base64.b64encode(raw).decode())
)
def test_any_other_text_holds_nothing(text: str) -> None:
    assert unpack(text) is None


@pytest.mark.parametrize(
    "inside",
    [
        b"[]",
        b"{}",
        b'["thought",[],"",""]',
        b'["opaque",[["google","signature","x"]],"",""]',
        b'["opaque",[["google","signature",7,""]],"",""]',
        b'["opaque",[],""]',
        b'["opaque",[],"\xff",""]',
        b"[" * 5_000,
    ],
)
def test_a_text_that_only_looks_like_one_holds_nothing(inside: bytes) -> None:
    assert unpack(PREFIX + base64.b64encode(inside).decode()) is None


def test_a_changed_envelope_holds_nothing_or_something_else() -> None:
    packed = pack((ONE,), "thought")
    for at in range(len(PREFIX), len(packed)):
        changed = packed[:at] + ("A" if packed[at] != "A" else "B") + packed[at + 1 :]
        assert unpack(changed) != Envelope((ONE,), "thought")
    for cut in range(len(packed)):
        assert unpack(packed[:cut]) is None


def test_a_thought_that_is_too_large_is_left_out_and_state_that_is_holds_nothing() -> None:
    large = Opaque("google", "signature", "A" * 150_000)
    assert unpack(pack((large,), "t" * 60_000)) == Envelope((large,))
    assert unpack(pack((large,), "t" * 10_000)) == Envelope((large,), "t" * 10_000)
    assert pack((large, large)) == ""
    assert len(pack((large,), "t" * 46_000)) <= ENVELOPE_MAX


def test_half_a_surrogate_pair_is_not_packed() -> None:
    assert pack((Opaque("google", "signature", "\ud800"),)) == ""
