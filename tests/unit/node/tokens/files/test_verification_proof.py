"""What was proven about a vocabulary: told truly, found for the very same files only, and never believed when damaged."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.request import TokenIds, token_ids
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.tokens.files import huggingface
from smg_node.tokens.files.probe_texts import probe_texts
from smg_node.tokens.files.verification_proof import (
    Proof,
    packed_pieces,
    proof_key,
    read_proof,
    unpacked_pieces,
    write_proof,
)
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from smg_node.tokens.loader import load
from support.models.vocabulary import bundle_of, llama2_json

ROLES = {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True, "add_eos_token": True}
TURN = {"added_tokens_decoder": {"600": {"content": "<|turn|>", "special": True}}}


BUILDING = "the fast one is being built"


class Deaf:
    """A fast encoder that says the same of every text."""

    name = "fastokens"

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        return token_ids([1])


class Shelf:
    """Proofs in memory, and how often one was made or used."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def find(self, bundle: TokenizerBundle) -> Proof | None:
        return read_proof(self.kept.get(proof_key(bundle), b""))

    def keep(self, bundle: TokenizerBundle, proof: Proof) -> None:
        self.kept[proof_key(bundle)] = write_proof(proof)

    def the_one(self) -> Proof:
        [written] = self.kept.values()
        proof = read_proof(written)
        assert proof is not None
        return proof


def llama(**config: Any) -> TokenizerBundle:
    files: Mapping[str, Any] = {"tokenizer.json": llama2_json(), "tokenizer_config.json": config}
    return bundle_of(files)


@pytest.fixture(params=[False, True], ids=["small", "large"])
def is_slow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether these files count as so large that the reference encodes first."""
    monkeypatch.setattr(huggingface, "SLOW_BYTES", 0 if request.param else 1 << 30)
    return bool(request.param)


def without_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_said: object) -> None:
        raise AssertionError("the reference was asked again")

    monkeypatch.setattr(huggingface, "_open", refuse)


def waits(loaded: LoadedTokenizer) -> bool:
    return loaded.faster is not None


def same(one: LoadedTokenizer, other: LoadedTokenizer) -> None:
    for name in ("vocabulary", "special_ids", "special_tokens", "eos_ids", "borders", "report"):
        assert getattr(one, name) == getattr(other, name), name
    assert (one.added_tokens, one.digest) == (other.added_tokens, other.digest)
    everything = range(one.vocabulary + 1)
    for each in (one.token_bytes, one.token_text):
        told = other.token_bytes if each == one.token_bytes else other.token_text
        assert [each(token) for token in everything] == [told(token) for token in everything]
    for text in probe_texts(one.added_tokens):
        for special in (False, True):
            ids = one.encode(text, add_special_tokens=special)
            assert ids == other.encode(text, add_special_tokens=special), text
            printed = one.decode(ids, skip_special_tokens=not special)
            assert printed == other.decode(ids, skip_special_tokens=not special)


@pytest.mark.parametrize(
    "config", [{}, ROLES, TURN, ROLES | TURN], ids=["plain", "roles", "added", "all"]
)
def test_a_tokenizer_by_its_proof_is_the_same_one(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf()
    first = load(llama(**config), proofs=shelf)
    assert first.encoder == "fastokens", "else nothing is proven"
    assert len(shelf.kept) == 1
    without_reference(monkeypatch)
    same(first, load(llama(**config), proofs=shelf))


@pytest.mark.parametrize(
    "config", [{}, ROLES, TURN, ROLES | TURN], ids=["plain", "roles", "added", "all"]
)
@pytest.mark.parametrize("is_slow", [True], ids=["large"], indirect=True)
def test_a_large_one_by_its_proof_encodes_at_once_and_soon_fast(
    config: dict[str, Any], is_slow: bool
) -> None:
    shelf = Shelf()
    first = load(llama(**config), proofs=shelf)
    second = load(llama(**config), proofs=shelf)
    assert (second.encoder, second.report.why_encoder) == ("tokenizers", BUILDING)
    assert second.faster is not None
    fast, why = second.faster()
    second.report = first.report
    same(first, second)
    second.take(fast, why)
    assert (second.encoder, second.source) == ("fastokens", fast)
    assert not waits(second)
    same(first, second)


@pytest.mark.parametrize("is_slow", [True], ids=["large"], indirect=True)
@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (
            lambda _brief: (_ for _ in ()).throw(ValueError("torn")),
            "fastokens cannot read it: torn",
        ),
        (lambda _brief: Deaf(), "fastokens disagrees with what was proven"),
    ],
    ids=["unreadable", "other ids"],
)
def test_a_fast_encoder_that_does_not_hold_leaves_the_reference_at_it(
    trouble: Callable[[bytes], Any], why: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf()
    first = load(llama(), proofs=shelf)
    second = load(llama(), proofs=shelf)
    assert second.faster is not None
    monkeypatch.setattr(huggingface, "FastEncoder", trouble)
    second.take(*second.faster())
    assert (second.encoder, second.report.why_encoder) == ("tokenizers", why)
    assert not waits(second)
    second.report = first.report
    same(first, second)


@pytest.mark.parametrize("is_slow", [True], ids=["large"], indirect=True)
def test_a_large_one_that_was_not_proven_is_waited_for(is_slow: bool) -> None:
    loaded = load(llama(), proofs=Shelf())
    assert (loaded.encoder, loaded.faster) == ("fastokens", None)


def test_other_files_have_another_proof() -> None:
    shelf = Shelf()
    load(llama(), proofs=shelf)
    load(llama(**ROLES), proofs=shelf)
    assert len(shelf.kept) == 2
    assert proof_key(llama()) == proof_key(replace(llama(), digest="other", origin="elsewhere"))


def test_another_version_of_a_library_has_another_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    before = proof_key(llama())
    monkeypatch.setattr("tokenizers.__version__", "0.0.0")
    assert proof_key(llama()) != before


@pytest.mark.parametrize(
    "lie",
    [
        {"ids_sum": bytes(32)},
        {"pieces": b"\xc1"},
        {"sections": {"post_processor": b"nonsense"}},
        {"sections": {"post_processor": b"null"}},
        {"added_tokens": ["<s>"]},
    ],
    ids=["sum", "pieces", "unreadable", "ids", "tokens"],
)
def test_a_proof_that_does_not_hold_is_made_anew(lie: dict[str, Any], is_slow: bool) -> None:
    shelf = Shelf()
    bundle = llama(**ROLES)
    first = load(bundle, proofs=shelf)
    truth = shelf.the_one()
    shelf.keep(
        bundle, Proof(**{name: getattr(truth, name) for name in truth.__struct_fields__} | lie)
    )
    same(first, load(bundle, proofs=shelf))
    assert shelf.the_one() == truth


def test_nothing_is_proven_where_the_reference_encodes() -> None:
    shelf = Shelf()
    load(llama(), encoder="tokenizers", proofs=shelf)
    assert not shelf.kept


def test_nothing_is_proven_where_there_is_no_table() -> None:
    definition = json.loads(llama2_json())
    definition["decoder"] = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "first",
    }
    shelf = Shelf()
    bundle = bundle_of({"tokenizer.json": definition})
    assert load(bundle, proofs=shelf).report.speller == "reference"
    assert not shelf.kept


PROOF = Proof(
    sections={"added_tokens": b"[]"},
    pieces=packed_pieces(["a", None]),
    special_ids=[1],
    eos_ids=[1, 2],
    added_tokens=["<s>"],
    borders=["<s>"],
    why_no_borders="",
    ids_sum=bytes(32),
)


@given(st.lists(st.none() | st.text(max_size=8), max_size=40))
def test_pieces_come_back_as_they_were(pieces: list[str | None]) -> None:
    assert unpacked_pieces(packed_pieces(pieces)) == pieces


@given(st.binary(max_size=200))
def test_any_bytes_are_a_proof_or_none(written: bytes) -> None:
    assert read_proof(written) is None
    assert unpacked_pieces(written) is None or isinstance(unpacked_pieces(written), list)


@given(st.data())
def test_a_proof_with_one_byte_changed_or_cut_is_none(data: st.DataObject) -> None:
    written = write_proof(PROOF)
    assert read_proof(written) == PROOF
    at = data.draw(st.integers(0, len(written) - 1))
    flip = data.draw(st.integers(1, 255))
    assert read_proof(written[:at] + bytes([written[at] ^ flip]) + written[at + 1 :]) is None
    assert read_proof(written[:at]) is None
