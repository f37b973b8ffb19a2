"""Bytes to characters: Python's rules against the reference's, byte by byte."""

from collections.abc import Sequence
from itertools import product

import pytest
from tokenizers import decoders

from smg_node.tokens.decoding.detokenizer import (
    REPLACEMENT,
    TableDetokenizer,
    Utf8,
    Vocabulary,
    WindowDetokenizer,
    fallback_utf8,
    lossy_utf8,
)
from smg_node.tokens.decoding.token_table import byte_alphabet

# One byte of each class that the UTF-8 automaton tells apart, and both ends of each class.
CLASSES = bytes.fromhex(
    "00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff"
)
NARROW = (0x41, 0x80, 0x90, 0xA0, 0xC1, 0xC2, 0xE0, 0xE1, 0xED, 0xF0, 0xF1, 0xF4, 0xF5)


def test_pythons_replacement_of_broken_utf8_is_the_reference_decoders() -> None:
    """Every sequence of up to three byte classes, and of up to five of the narrow ones."""
    alphabet = byte_alphabet()
    decode = decoders.ByteLevel().decode
    sequences = [
        *product(CLASSES, repeat=1),
        *product(CLASSES, repeat=2),
        *product(CLASSES, repeat=3),
    ]
    sequences += [*product(NARROW, repeat=4)]
    sequences += [(first, *rest, 0x41) for first, *rest in product(NARROW[5:], repeat=4)]
    for sequence in sequences:
        wanted = decode(["".join(alphabet[byte] for byte in sequence)])
        assert bytes(sequence).decode("utf-8", "replace") == wanted, bytes(sequence)


@pytest.mark.parametrize("decode", [lossy_utf8, fallback_utf8])
def test_bytes_one_at_a_time_are_the_bytes_at_once(decode: Utf8) -> None:
    for sequence in product(NARROW, repeat=4):
        machine = TableDetokenizer([None] * 256, lambda byte: bytes([byte]), decode)
        pieces = [*map(machine.feed, sequence), machine.finish()]
        assert "".join(pieces) == decode(bytes(sequence), final=True)[0], bytes(sequence)
        # A character leaves with its last byte, and not one byte later.
        whole = bytes(sequence)
        for length in range(1, 5):
            printed = "".join(pieces[:length])
            assert printed == decode(whole[:length], final=False)[0]


def test_byte_fallback_marks_each_byte_and_lossy_each_broken_start() -> None:
    assert lossy_utf8(b"\xe4\xbdA", final=True) == ("\ufffdA", 3)
    assert fallback_utf8(b"\xe4\xbdA", final=True) == ("\ufffd\ufffdA", 3)
    assert fallback_utf8("你".encode() + b"\xff\xe4\xbd", final=False) == ("你\ufffd", 4)
    assert fallback_utf8("你".encode() + b"\xff\xe4\xbd", final=True) == ("你\ufffd\ufffd\ufffd", 6)


class Spelled:
    """A decoder that joins its tokens' bytes, like the reference of a byte-level vocabulary."""

    def __init__(self, *tokens: bytes, hidden: int | None = None) -> None:
        self.tokens = tokens
        self.hidden = hidden
        self.asked = 0

    def prints(self, token_id: int) -> bool:
        return token_id < len(self.tokens) and token_id != self.hidden

    def text(self, ids: Sequence[int]) -> str:
        self.asked = max(self.asked, len(ids))
        return b"".join(self.tokens[token_id] for token_id in ids).decode("utf-8", "replace")

    def added_text(self, token_id: int) -> str | None:
        return None


def window(vocabulary: Vocabulary, *ids: int, tail: tuple[int, ...] = ()) -> list[str]:
    machine = WindowDetokenizer(vocabulary, tail, spaces_between_added=True)
    return [*map(machine.feed, ids), machine.finish()]


def test_the_window_waits_for_the_rest_of_a_character() -> None:
    emoji = [bytes([byte]) for byte in "😀".encode()]
    assert window(Spelled(b"a", *emoji), 0, 1, 2, 3, 4, 0) == ["a", "", "", "", "😀", "a", ""]


def test_the_window_does_not_wait_for_ever_for_what_never_becomes_one() -> None:
    pieces = window(Spelled(b"\xff"), *[0] * 10)
    assert pieces[:5] == ["", "", "", REPLACEMENT, REPLACEMENT]
    assert "".join(pieces) == REPLACEMENT * 10


def test_a_real_replacement_character_is_no_broken_one_for_ever() -> None:
    pieces = window(Spelled(REPLACEMENT.encode(), b"x"), 0, 0, 0, 0, 0, 1)
    assert "".join(pieces) == REPLACEMENT * 5 + "x"


def test_the_window_stays_small() -> None:
    vocabulary = Spelled(b"ab", b"", b"\xff", hidden=3)
    window(vocabulary, *[0, 1, 1, 1, 1, 1, 2, 2, 3, 99] * 100)
    assert vocabulary.asked <= 24


def test_the_prompt_is_context_and_not_text() -> None:
    assert window(Spelled(b"a", b"b"), 1, tail=(0, 0)) == ["b", ""]


def test_added_tokens_in_a_row_are_printed_without_spaces_if_asked() -> None:
    class Spaced(Spelled):
        def text(self, ids: Sequence[int]) -> str:
            return " ".join(self.tokens[token_id].decode() for token_id in ids)

        def added_text(self, token_id: int) -> str | None:
            return self.tokens[token_id].decode() if token_id else None

    vocabulary = Spaced(b"word", b"<a>", b"<b>")
    for between, wanted in ((True, "word <a> <b> word <b>"), (False, "word <a><b> word <b>")):
        machine = WindowDetokenizer(vocabulary, (), spaces_between_added=between)
        found = "".join([*map(machine.feed, (0, 1, 2, 0, 2)), machine.finish()])
        assert found == wanted
