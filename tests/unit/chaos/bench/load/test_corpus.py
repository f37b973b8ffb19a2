import json
from pathlib import Path

import pytest

from smg_chaos.bench.load.corpus import corpus_of, prose, standard_library

TEXTS = [f'def f{n}():\n    """Say "hé" \\ {n}."""\n    return "\t{n}"\n' for n in range(200)]


def test_a_document_is_whole_lines_of_the_text_in_json_spelling() -> None:
    corpus, everything = corpus_of(TEXTS), "".join(TEXTS) * 2
    for number in range(50):
        text = json.loads(b'"' + corpus.document(number, 500) + b'"')
        assert text in everything
        assert text.endswith("\n")


def test_documents_are_about_as_long_as_asked() -> None:
    corpus = corpus_of(TEXTS)
    for number in range(100):
        assert 900 <= len(corpus.document(number, 1000)) <= 1100


def test_the_same_number_gives_the_same_and_others_begin_elsewhere() -> None:
    corpus = corpus_of(TEXTS)
    assert corpus.document(5, 700) == corpus.document(5, 700)
    assert len({corpus.document(number, 700) for number in range(200)}) > 150


def test_a_document_may_be_longer_than_the_corpus() -> None:
    corpus = corpus_of(["a\n", "b\n"])
    document = corpus.document(0, 100)
    assert 100 <= len(document) <= 103
    assert set(json.loads(b'"' + document + b'"').split()) == {"a", "b"}


def test_one_long_line_is_taken_whole() -> None:
    corpus = corpus_of(["x" * 5000 + "\n", "y\n"])
    assert len(corpus.document(0, 100)) == 5002


@pytest.mark.parametrize("texts", [[], [""], ["one"]])
def test_a_corpus_needs_lines(texts: list[str]) -> None:
    with pytest.raises(ValueError, match="lines"):
        corpus_of(texts)


def test_sources_in_other_encodings_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    (tmp_path / "b.py").write_bytes(b"\xff\xfe\n" * 3)
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "c.py").write_text("three\n" * 9)
    assert standard_library(tmp_path).lines == 2


def test_there_is_a_standard_library_of_megabytes() -> None:
    assert standard_library().lines > 50_000


def test_prose_is_plain_and_as_long_as_asked() -> None:
    said = prose(500)
    assert said == prose(500)
    assert said.isascii()
    assert not {'"', "\\", "\n"} & set(said)
    assert len(said.split()) == 500
    assert len(set(said.split())) > 30
