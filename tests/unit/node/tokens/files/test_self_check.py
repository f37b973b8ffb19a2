"""The probes and the verdict."""

from array import array

from smg_node.core.errors import invalid
from smg_node.core.generation.request import TokenIds
from smg_node.tokens.files.probe_texts import ADDED_MAX, probe_texts
from smg_node.tokens.files.self_check import disagreement, expectation


class Codes:
    """Ids are code points; `wrong` is a text whose ids differ, `refused` one it raises for."""

    name = "codes"

    def __init__(self, wrong: str = "", refused: str = "", wraps: int = 1) -> None:
        self.wrong = wrong
        self.refused = refused
        self.wraps = wraps

    def encode(self, text: str, *, add_special_tokens: bool) -> TokenIds:
        if self.refused and self.refused in text:
            raise invalid("no")
        codes = [self.wraps] * add_special_tokens + [ord(character) for character in text]
        return array("I", codes[:-1] if self.wrong and self.wrong in text else codes)


def test_there_are_at_least_300_different_probes_of_every_kind() -> None:
    texts = probe_texts(["<|im_start|>", "<|im_end|>"])
    assert len(texts) >= 300
    assert len(set(texts)) >= 300
    joined = "".join(texts)
    for sign in (
        "ß",
        "中",
        "ガ",
        "각",
        "ض",
        "ש",
        "ऋ",
        "😀",
        "\u200d",
        "\x00",
        "\x1b",
        "\r\n",
        "def ",
    ):
        assert sign in joined
    assert any(text.isspace() for text in texts)
    assert "<|im_start|>" in texts
    assert max(map(len, texts)) < 1000
    joined.encode()


def test_the_probes_are_the_same_every_time() -> None:
    assert probe_texts(["<a>"]) == probe_texts(["<a>"])


def test_of_thousands_of_added_tokens_some_are_tried() -> None:
    tokens = [f"<extra_{number}>" for number in range(3000)]
    texts = probe_texts(tokens)
    assert len(texts) - len(probe_texts([])) == 4 * ADDED_MAX
    assert tokens[0] in texts
    assert tokens[-1] in texts
    assert tokens[1] not in texts


def test_an_equal_encoder_is_trusted() -> None:
    assert disagreement(Codes(), expectation(Codes(), [])) is None


def test_one_other_id_is_enough() -> None:
    said = disagreement(Codes(wrong="क्षि"), expectation(Codes(), []))
    assert said is not None
    assert said.startswith("other ids for the probe 'ऋषियों")


def test_the_tokens_around_a_text_are_checked_too() -> None:
    said = disagreement(Codes(wraps=2), expectation(Codes(), []))
    assert said == "other ids for the probe '': 2 where 1 was expected, at position 0"


def test_an_encoder_that_refuses_what_the_reference_takes_is_not_trusted() -> None:
    said = disagreement(Codes(refused="\x00"), expectation(Codes(), []))
    assert said is not None
    assert "only one of the two encodes it" in said
    assert disagreement(Codes(refused="\x00"), expectation(Codes(refused="\x00"), [])) is None
