import os
import tempfile
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.vocabularies.noted_vocabularies import NOTED_MAX, NotedVocabularies
from smg_node.tokens.files.verification_proof import proof_key


def bundle(said: bytes) -> TokenizerBundle:
    return TokenizerBundle({"tokenizer.json": said, "config.json": b"{}"}, "digest", "an engine")


def noted(folder: Path, said: bytes) -> str:
    made = bundle(said)
    key = proof_key(made)
    assert NotedVocabularies(folder).note(key, made)
    return key


def test_what_was_noted_is_read_by_another_process(tmp_path: Path) -> None:
    folder = tmp_path / "not there yet"
    key = noted(folder, b"one" * 1000)
    notes = NotedVocabularies(folder)
    assert notes.names() == {key}
    assert notes.read(key) == bundle(b"one" * 1000)
    assert notes.read("0" * 64) is None


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_half_a_note_is_none(tmp_path: Path, cut: int) -> None:
    key = noted(tmp_path, b"one" * 1000)
    (tmp_path / key).write_bytes((tmp_path / key).read_bytes()[:cut])
    assert NotedVocabularies(tmp_path).read(key) is None


def test_a_note_of_other_files_is_none(tmp_path: Path) -> None:
    one, other = noted(tmp_path, b"one"), noted(tmp_path, b"other")
    os.replace(tmp_path / one, tmp_path / other)
    assert NotedVocabularies(tmp_path).read(other) is None


def test_a_file_that_goes_on_after_its_end_or_has_none_is_no_note(tmp_path: Path) -> None:
    for content in (zlib.compress(b"x" * 100)[:-3], b"nothing compressed", b""):
        note = {"digest": "d", "origin": "o", "files": {"tokenizer.json": content}}
        (tmp_path / ("a" * 64)).write_bytes(msgspec.msgpack.encode(note))
        assert NotedVocabularies(tmp_path).read("a" * 64) is None


def test_what_is_damaged_is_noted_anew_by_whoever_needs_it(tmp_path: Path) -> None:
    made = bundle(b"one" * 1000)
    key = noted(tmp_path, b"one" * 1000)
    notes = NotedVocabularies(tmp_path)
    for damage in (b"", b"\x91" * 100_000, msgspec.msgpack.encode({"x": 1})):
        (tmp_path / key).write_bytes(damage)
        assert notes.read(key) is None
        assert notes.names() == frozenset(), "dropped"
        assert notes.note(key, made)
        assert notes.read(key) == made


@given(st.binary(max_size=200), st.integers(min_value=0))
def test_garbage_is_no_note(garbage: bytes, place: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        key = noted(Path(folder), b"one")
        path = Path(folder) / key
        whole = path.read_bytes()
        cut = place % (len(whole) + 1)
        path.write_bytes(whole[:cut] + garbage + whole[cut + len(garbage) :])
        read = NotedVocabularies(Path(folder)).read(key)
        assert read is None or read.files == bundle(b"one").files, "names may be others"
        path.write_bytes(garbage)
        assert NotedVocabularies(Path(folder)).read(key) is None


def test_files_that_unpack_to_more_than_any_tokenizer_are_no_note(tmp_path: Path) -> None:
    bomb = zlib.compress(bytes(200 << 20), 1)
    note = {"digest": "d", "origin": "o", "files": {"a": bomb, "b": bomb}}
    (tmp_path / ("a" * 64)).write_bytes(msgspec.msgpack.encode(note))
    assert NotedVocabularies(tmp_path).read("a" * 64) is None


def test_a_start_drops_what_nobody_finished_writing(tmp_path: Path) -> None:
    key = noted(tmp_path, b"one")
    (tmp_path / f"{key}.4711.new").write_bytes(b"half")
    NotedVocabularies(tmp_path).begin()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([key, "started"])


def test_the_newest_are_kept(tmp_path: Path) -> None:
    keys = []
    for number in range(NOTED_MAX + 2):
        for age, path in enumerate(sorted(tmp_path.iterdir(), key=lambda one: one.stat().st_mtime)):
            os.utime(path, (age, age))
        keys.append(noted(tmp_path, b"%d" % number))
    assert NotedVocabularies(tmp_path).names() == set(keys[2:])


def test_a_start_drops_what_the_run_before_did_not_use(tmp_path: Path) -> None:
    used, unused = noted(tmp_path, b"used"), noted(tmp_path, b"unused")
    NotedVocabularies(tmp_path).begin()
    assert NotedVocabularies(tmp_path).names() == {used, unused}, "both are of the run before"
    os.utime(tmp_path / unused, (1, 1))
    os.utime(tmp_path / "started", (2, 2))
    assert NotedVocabularies(tmp_path).note(used, bundle(b"used"))
    NotedVocabularies(tmp_path).begin()
    assert NotedVocabularies(tmp_path).names() == {used}


def test_a_disk_that_refuses_costs_the_note_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a file"
    folder.write_text("")
    made = bundle(b"one")
    notes = NotedVocabularies(folder)
    notes.begin()
    assert not notes.note(proof_key(made), made)
    assert notes.names() == frozenset()
    assert notes.read(proof_key(made)) is None
