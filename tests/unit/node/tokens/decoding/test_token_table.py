"""Tables: what they claim, and that a claim the reference does not share makes no table."""

import json
from collections.abc import Sequence

import pytest
from tokenizers import Tokenizer

from smg_node.tokens.decoding.token_table import TokenTable, byte_alphabet, table_of
from support.models.vocabulary import added_token, llama2_json

BYTE_LEVEL = {"type": "ByteLevel"}
LLAMA = json.loads(llama2_json())["decoder"]


class Says:
    """A reference decoder whose text is made by a table that may differ."""

    def __init__(self, table: TokenTable, but: dict[tuple[int, ...], str] | None = None) -> None:
        self.table = table
        self.but = but or {}

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        exact = self.table.decode(ids, skip_special_tokens=skip_special_tokens)
        return self.but.get(tuple(ids), exact)


def test_the_byte_alphabet_is_gpt2s() -> None:
    alphabet = byte_alphabet()
    assert len(set(alphabet)) == 256
    assert alphabet[0x20] == "Ġ"
    assert alphabet[0x0A] == "Ċ"
    assert alphabet[0x41] == "A"
    assert alphabet[0xAD] == "Ń"
    assert alphabet[0x7F] == "ġ"


def test_every_spelling_the_reference_has_for_bytes() -> None:
    """Added tokens go through the same decoder; one with a space in it is its own text."""
    pieces = ["Ġa", "é", " b", "<｜x▁y｜>", "<é>", "ä½", "ł", "日"]
    definition = {
        "version": "1.0",
        "added_tokens": [added_token(3, pieces[3])],
        "decoder": {
            "type": "ByteLevel",
            "add_prefix_space": True,
            "trim_offsets": True,
            "use_regex": True,
        },
        "model": {
            "type": "BPE",
            "vocab": {piece: place for place, piece in enumerate(pieces)},
            "merges": [],
        },
    }
    reference = Tokenizer.from_str(json.dumps(definition))
    table, why = table_of(
        pieces, decoder=BYTE_LEVEL, special_ids=frozenset({3}), reference=reference
    )
    assert table is not None, why
    assert [table.token_bytes(place) for place in range(8)] == [
        b" a",
        b"\xe9",
        b" b",
        "<｜x▁y｜>".encode(),
        b"<\xe9>",
        b"\xe4\xbd",
        b"\xa0",
        "日".encode(),
    ]
    assert table.token_text(1) == "\ufffd"
    assert table.token_text(3) == "<｜x▁y｜>"
    assert table.decode([5, 3, 6], skip_special_tokens=True) == "你"


def test_unknown_ids_are_nothing() -> None:
    table = TokenTable([b"a", b"", b"\xff"], special_ids=frozenset({0, 77}))
    for token_id in (1, 3, 1 << 32, -1):
        assert table.token_bytes(token_id) == b""
        assert table.token_text(token_id) == ""
    assert table.decode([0, 1, 9, 0], skip_special_tokens=False) == "aa"
    machine = table.detokenizer(
        prompt_tail=(), skip_special_tokens=False, spaces_between_special_tokens=True
    )
    assert [machine.feed(9), machine.feed(2), machine.feed(9), machine.finish()] == [
        "",
        "\ufffd",
        "",
        "",
    ]


def test_hidden_tokens_do_not_break_a_character_that_goes_on_behind_them() -> None:
    table = TokenTable([b"\xe4\xbd", b"<s>", b"\xa0"], special_ids=frozenset({1}))
    for skip, wanted in ((True, ["", "", "你", ""]), (False, ["", "\ufffd<s>", "\ufffd", ""])):
        machine = table.detokenizer(
            prompt_tail=(), skip_special_tokens=skip, spaces_between_special_tokens=True
        )
        assert [machine.feed(0), machine.feed(1), machine.feed(2), machine.finish()] == wanted


def test_one_token_that_prints_differently_makes_no_table() -> None:
    pieces = ["a", "b", "c"]
    honest = TokenTable([b"a", b"b", b"c"], special_ids=frozenset())
    table, why = table_of(
        pieces, decoder=BYTE_LEVEL, special_ids=frozenset(), reference=Says(honest, {(1,): "B"})
    )
    assert table is None
    assert why == "token 1 prints differently through its decoder"


def test_a_decoder_that_looks_at_neighbours_makes_no_table() -> None:
    class Spacing(Says):
        def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
            return " ".join(super(Spacing, self).decode([one]) for one in ids)

    honest = TokenTable([b"a", b"b", b"c"], special_ids=frozenset())
    table, why = table_of(
        ["a", "b", "c"], decoder=BYTE_LEVEL, special_ids=frozenset(), reference=Spacing(honest)
    )
    assert table is None
    assert "sequence" in why


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        [],
        {},
        {"type": "WordPiece"},
        {"type": "Sequence"},
        {"type": "Sequence", "decoders": [1]},
        {"type": "Sequence", "decoders": []},
        LLAMA | {"decoders": LLAMA["decoders"][:2]},
        LLAMA | {"decoders": [{"type": "Replace"}, *LLAMA["decoders"][1:]]},
        LLAMA | {"decoders": [*LLAMA["decoders"][:3], {"type": "Strip", "content": "x"}]},
        LLAMA | {"decoders": [*LLAMA["decoders"], *LLAMA["decoders"]]},
    ],
)
def test_other_decoders_make_no_table(decoder: object) -> None:
    honest = TokenTable([b"a"], special_ids=frozenset())
    table, why = table_of(["a"], decoder=decoder, special_ids=frozenset(), reference=Says(honest))
    assert table is None
    assert "looks beyond single tokens" in why


def test_gemmas_decoder_keeps_the_leading_space() -> None:
    definition = json.loads(llama2_json())
    definition["decoder"]["decoders"] = definition["decoder"]["decoders"][:3]
    reference = Tokenizer.from_str(json.dumps(definition))
    size = reference.get_vocab_size(with_added_tokens=True)
    pieces = [reference.id_to_token(token_id) for token_id in range(size)]
    table, why = table_of(
        pieces,
        decoder=definition["decoder"],
        special_ids=frozenset({0, 1, 2}),
        reference=reference,
    )
    assert table is not None, why
    ids = reference.encode_batch_fast(["hello world"], add_special_tokens=False)[0].ids
    assert table.decode(ids, skip_special_tokens=False) == " hello world"


def test_an_empty_vocabulary_is_no_division_by_zero() -> None:
    table, _ = table_of(
        [None, None],
        decoder=BYTE_LEVEL,
        special_ids=frozenset({1}),
        reference=Says(TokenTable([], special_ids=frozenset())),
    )
    assert table is not None
    assert table.decode([0, 1], skip_special_tokens=False) == ""


def test_the_test_vocabulary_has_its_specials_where_we_think() -> None:
    assert json.loads(llama2_json())["added_tokens"][2] == added_token(2, "</s>")
