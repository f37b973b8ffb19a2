import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.vocabularies.noted_vocabularies import NotedVocabularies
from smg_node.fleet.vocabularies.shared_vocabularies import SharedVocabularies, is_large
from smg_node.tokens.files.huggingface import SLOW_BYTES
from smg_node.tokens.files.verification_proof import proof_key
from smg_node.tokens.loaded_tokenizer import Borders, LoadedTokenizer, LoadReport, Vocabulary
from support.models.bytewise_tokenizer import EOS, VOCABULARY, BytewiseTokenizer

LARGE = TokenizerBundle({"tokenizer.json": b" " * SLOW_BYTES}, "of an engine", "an engine")
SMALL = TokenizerBundle({"tokenizer.json": b" " * (SLOW_BYTES - 1)}, "small", "an engine")


class _Named(BytewiseTokenizer):
    name = "fastokens"


def tokenizer() -> LoadedTokenizer:
    return LoadedTokenizer(
        digest="of a note",
        vocabulary=Vocabulary(VOCABULARY, frozenset(), {}, frozenset({EOS}), Borders(())),
        encoder=_Named(),
        speller=BytewiseTokenizer(),
        report=LoadReport("fastokens", "", "table", ""),
    )


class Process:
    """A data process that asks; `answers` is what happens when it does."""

    def __init__(self, folder: Path, *, serves_nothing: bool = True) -> None:
        self.asked = 0
        self.answers: Callable[[], None] = lambda: None
        self.noted = NotedVocabularies(folder)
        self.read: dict[str, LoadedTokenizer] = {}
        self.shared = SharedVocabularies(
            self.read, self.noted, ask=self._ask, serves_nothing=lambda: serves_nothing
        )

    def _ask(self) -> None:
        self.asked += 1
        threading.Timer(0.01, self.answers).start()


@pytest.mark.parametrize(
    ("name", "size", "large"),
    [
        ("tokenizer.json", SLOW_BYTES, True),
        ("tokenizer.json", SLOW_BYTES - 1, False),
        ("o200k.tiktoken", SLOW_BYTES, True),
        ("config.json", SLOW_BYTES, False),
    ],
)
def test_only_a_large_vocabulary_is_worth_sharing(name: str, size: int, large: bool) -> None:
    assert is_large(TokenizerBundle({name: b" " * size}, "d", "an engine")) is large
    assert not is_large(TokenizerBundle({}, "d", "an engine"))


def test_what_the_template_has_read_is_given_out_once_and_under_the_engines_own_digest(
    tmp_path: Path,
) -> None:
    process = Process(tmp_path, serves_nothing=False)
    made = process.read[proof_key(LARGE)] = tokenizer()
    assert process.shared.find(LARGE) is made
    assert made.digest == "of an engine"
    assert process.shared.find(LARGE) is None, "caches in front of it belong to one model"
    assert process.noted.names() == {proof_key(LARGE)}, "it is used"


def test_a_small_vocabulary_is_neither_noted_nor_asked_for(tmp_path: Path) -> None:
    process = Process(tmp_path)
    assert process.shared.find(SMALL) is None
    assert (process.asked, process.noted.names()) == (0, frozenset())


def test_a_process_that_serves_reads_for_itself_and_notes_it_for_others(tmp_path: Path) -> None:
    process = Process(tmp_path, serves_nothing=False)
    assert process.shared.find(LARGE) is None
    assert process.asked == 0
    assert process.noted.names() == {proof_key(LARGE)}


def test_a_process_that_serves_nothing_waits_until_another_one_has_its_place(
    tmp_path: Path,
) -> None:
    process = Process(tmp_path)
    process.answers = process.shared.replace
    with pytest.raises(SmgError) as raised:
        process.shared.find(LARGE)
    assert raised.value.code == "process_replaced"
    assert process.noted.read(proof_key(LARGE)) == LARGE


def test_a_process_that_gets_no_template_reads_for_itself_and_does_not_ask_again(
    tmp_path: Path,
) -> None:
    process = Process(tmp_path)
    process.answers = process.shared.alone
    assert process.shared.find(LARGE) is None
    assert process.shared.find(LARGE) is None
    assert process.asked == 1


def test_a_process_whose_disk_refuses_does_not_ask(tmp_path: Path) -> None:
    folder = tmp_path / "a file"
    folder.write_text("")
    process = Process(folder)
    assert process.shared.find(LARGE) is None
    assert process.asked == 0
