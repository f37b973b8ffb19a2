"""The tiny models say what they are for, by every token, whatever reads them."""

import json
import math
import struct
from array import array
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from support.models.tiny_model import SCRIPTS, make_model, read_script
from support.models.tiny_tokenizer import (
    MARKERS,
    PROMPT_END,
    SPECIAL,
    TURN_END,
    byte_names,
    spell,
    token_bytes,
    token_id,
    trained_tokenizer,
    with_pieces,
)
from support.models.tiny_weights import HIDDEN, Tensor, weights

# Ids on this side of the wire and on the engine's, on every Python, must be the same for ever: the
# tests of other rooms write them down.
KNOWN_TEXT = "Good morning, Paris! 42 café 你好 🙂 def x"
KNOWN_IDS = [
    *(45, 85, 300, 523, 84, 367, 18, 227, 568, 7, 399, 24, 320, 71, 76, 335, 227, 431),
    *(551, 303, 75, 76, 227, 94),
]


def tokenizer_of(folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def next_logits(tensors: dict[str, Tensor], before: int) -> list[float]:
    """Return what the model computes after `before`: its blocks add nothing to the embedding."""
    embeddings = tensors["model.embed_tokens.weight"].values
    x = embeddings[before * HIDDEN : (before + 1) * HIDDEN]
    rms = math.sqrt(sum(v * v for v in x) / HIDDEN + 1e-6)
    normal = [v / rms for v in x]
    head = tensors["lm_head.weight"].values
    rows = range(0, len(head), HIDDEN)
    return [sum(map(float.__mul__, normal, head[at : at + HIDDEN])) for at in rows]


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_a_script_is_spelled_in_tokens_that_never_come_twice(name: str, tmp_path: Path) -> None:
    script = make_model(tmp_path, SCRIPTS[name], endless=name == "endless")
    tokenizer = tokenizer_of(tmp_path)
    assert len(set(script.ids)) == len(script.ids)
    assert tokenizer.decode(list(script.ids), skip_special_tokens=True) == SCRIPTS[name]
    assert b"".join(token_bytes(tokenizer, i) for i in script.ids).decode() == SCRIPTS[name]
    assert tokenizer.encode(PROMPT_END).ids[-1] not in script.ids
    assert read_script(tmp_path) == script


def test_the_model_leads_from_each_token_of_the_script_to_the_next_by_a_wide_margin() -> None:
    ids = (300, 301, 17, 302)
    tensors = weights(ids, end=2, rows=512, endless=False, seed=0)
    for before, after in zip((5, 511, 2, *ids), (300, 300, 300, *ids[1:], 2), strict=True):
        logits = next_logits(tensors, before)
        ranked = sorted(range(512), key=lambda row: -logits[row])
        assert ranked[0] == after
        assert 30 < logits[after] - logits[ranked[1]] < 70


def test_an_endless_model_starts_again() -> None:
    ids = (300, 301, 17)
    tensors = weights(ids, end=2, rows=512, endless=True, seed=0)
    for before, after in zip((5, *ids), (300, 301, 17, 300), strict=True):
        logits = next_logits(tensors, before)
        assert max(range(512), key=logits.__getitem__) == after


def test_the_blocks_of_the_model_add_nothing() -> None:
    tensors = weights((300, 301), end=2, rows=512, endless=False, seed=3)
    outputs = [
        t for name, t in tensors.items() if name.endswith(("o_proj.weight", "down_proj.weight"))
    ]
    assert len(outputs) == 4
    assert not any(any(tensor.values) for tensor in outputs)
    inside = [t for name, t in tensors.items() if "layers" in name and t not in outputs]
    assert all(any(tensor.values) for tensor in inside)


def test_ids_are_the_same_everywhere() -> None:
    tokenizer = trained_tokenizer()
    assert [token_id(tokenizer, token) for token in (*SPECIAL, *MARKERS)] == list(range(7))
    assert tokenizer.encode(KNOWN_TEXT).ids == KNOWN_IDS
    assert tokenizer.decode(KNOWN_IDS) == KNOWN_TEXT


def test_a_script_leaves_the_ids_of_prompts_alone(tmp_path: Path) -> None:
    for name in SCRIPTS:
        make_model(tmp_path, SCRIPTS[name])
        for text in (KNOWN_TEXT, SCRIPTS[name], PROMPT_END):
            expected = trained_tokenizer().encode(text).ids
            assert tokenizer_of(tmp_path).encode(text).ids == expected


def test_the_split_script_has_tokens_that_end_inside_a_character(tmp_path: Path) -> None:
    script = make_model(tmp_path, SCRIPTS["split"])
    tokenizer = tokenizer_of(tmp_path)
    broken = [
        i for i in script.ids if "\ufffd" in token_bytes(tokenizer, i).decode(errors="replace")
    ]
    assert len(broken) >= 10


@pytest.mark.parametrize(
    ("name", "markers"),
    [
        ("think", ("<think>", "</think>")),
        ("tool", ("<tool_call>", "</tool_call>")),
        ("two-tools", ("<tool_call>", "</tool_call>")),
    ],
)
def test_markers_are_one_token_and_stay_visible(
    name: str, markers: tuple[str, ...], tmp_path: Path
) -> None:
    script = make_model(tmp_path, SCRIPTS[name])
    tokenizer = tokenizer_of(tmp_path)
    for marker in markers:
        assert token_id(tokenizer, marker) in script.ids
    assert tokenizer.decode(list(script.ids), skip_special_tokens=True) == SCRIPTS[name]
    assert tokenizer.decode([token_id(tokenizer, TURN_END)], skip_special_tokens=True) == ""


def test_the_weights_file_is_what_the_format_says(tmp_path: Path) -> None:
    make_model(tmp_path, SCRIPTS["plain"])
    raw = (tmp_path / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    assert header.pop("__metadata__") == {"format": "pt"}
    rows = json.loads((tmp_path / "config.json").read_text())["vocab_size"]
    assert header["lm_head.weight"]["shape"] == [rows, HIDDEN]
    end = 0
    for tensor in header.values():
        start, stop = tensor["data_offsets"]
        assert start == end
        assert stop - start == 4 * math.prod(tensor["shape"])
        end = stop
    assert 8 + size + end == len(raw)
    start, stop = header["model.norm.weight"]["data_offsets"]
    assert array("f", raw[8 + size + start : 8 + size + stop]).tolist() == [1.0] * HIDDEN


def test_the_same_script_makes_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_model(tmp_path / name, SCRIPTS["plain"], seed=5)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert "model.safetensors" in files
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("script", ["", "\n"])
def test_what_cannot_be_said_is_refused(script: str) -> None:
    with pytest.raises(ValueError, match="script"):
        spell(trained_tokenizer(), script.encode())


def test_byte_names_are_those_of_gpt_2() -> None:
    names = byte_names()
    assert len(names) == len(set(names.values())) == 256
    assert (names[ord("A")], names[ord(" ")], names[ord("\n")], names[0], names[0xAD]) == (
        "A",
        "Ġ",
        "Ċ",
        "Ā",
        "Ń",
    )


TOKENIZER = trained_tokenizer()


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=3, max_size=60))
def test_any_text_that_can_be_spelled_is_spelled_exactly(text: str) -> None:
    try:
        pieces = spell(TOKENIZER, text.encode())
    except ValueError:
        assert len(set(text)) < len(text)
        return
    assert b"".join(pieces) == text.encode()
    assert len(set(pieces)) == len(pieces)
    grown, ids = with_pieces(TOKENIZER, pieces)
    assert len(set(ids)) == len(ids)
    assert b"".join(token_bytes(grown, i) for i in ids) == text.encode()
