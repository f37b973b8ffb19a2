"""The folder of proofs: what is kept is found, what is damaged is not, and a disk that refuses costs nothing but time."""

import os
from pathlib import Path

import pytest

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.models.tokenizer_proofs import PROOFS_KEPT_MAX, KeptProofs
from smg_node.tokens.files.verification_proof import Proof, packed_pieces, proof_key

PROOF = Proof(
    sections={},
    pieces=packed_pieces(["a"]),
    special_ids=[],
    eos_ids=[],
    added_tokens=[],
    borders=[],
    why_no_borders="it has no added tokens that cut a text",
    ids_sum=bytes(32),
)


def bundle(content: bytes = b"{}") -> TokenizerBundle:
    return TokenizerBundle({"tokenizer.json": content}, "sum", "a test")


def test_what_is_kept_is_found_by_another_process(tmp_path: Path) -> None:
    KeptProofs(tmp_path / "proofs").keep(bundle(), PROOF)
    other = KeptProofs(tmp_path / "proofs")
    assert other.find(bundle()) == PROOF
    assert other.find(bundle(b"[]")) is None
    assert [item.name for item in (tmp_path / "proofs").iterdir()] == [proof_key(bundle())]
    assert (tmp_path / "proofs").stat().st_mode & 0o777 == 0o700


def test_a_damaged_one_is_none_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    proofs = KeptProofs(tmp_path)
    proofs.keep(bundle(), PROOF)
    path = tmp_path / proof_key(bundle())
    path.write_bytes(path.read_bytes()[:-1])
    assert proofs.find(bundle()) is None
    assert "is damaged and not used" in caplog.text
    proofs.keep(bundle(), PROOF)
    assert proofs.find(bundle()) == PROOF


def test_the_oldest_go_first(tmp_path: Path) -> None:
    proofs = KeptProofs(tmp_path)
    for number in range(PROOFS_KEPT_MAX + 2):
        proofs.keep(bundle(b"%d" % number), PROOF)
        os.utime(tmp_path / proof_key(bundle(b"%d" % number)), (number, number))
    proofs.keep(bundle(b"last"), PROOF)
    assert len(list(tmp_path.iterdir())) == PROOFS_KEPT_MAX
    assert proofs.find(bundle(b"0")) is None
    assert proofs.find(bundle(b"last")) == PROOF


def test_a_folder_that_cannot_be_had_costs_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "proofs").write_text("a file")
    proofs = KeptProofs(tmp_path / "proofs")
    proofs.keep(bundle(), PROOF)
    assert proofs.find(bundle()) is None
    assert "cannot be kept" in caplog.text
    assert "cannot be read" in caplog.text
