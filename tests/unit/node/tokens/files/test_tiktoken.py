"""Ranks files: families, special tokens, and files that are none."""

import base64
import sys
from typing import Any

import pytest
import tiktoken

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.tokens.caches.prefix_cache import prefix_cache
from smg_node.tokens.files.side_files import read_side_files
from smg_node.tokens.files.tiktoken import cut_runs, read_ranks
from smg_node.tokens.files.tiktoken_families import FAMILIES, family_of
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from smg_node.tokens.loader import load
from support.models.vocabulary import bundle_of, qwen_tiktoken, qwen_tiktoken_bundle

# Every byte, and a few merges: enough to be a vocabulary.
MERGES = [b"he", b"ll", b"hell", b"hello", b" w", "中".encode()[:2], "中".encode(), b"11", b"111"]
PIECES = [bytes([byte]) for byte in range(256)] + MERGES
RANKS = b"".join(base64.b64encode(piece) + b" %d\n" % rank for rank, piece in enumerate(PIECES))


def loaded(name: str = "llama3.tiktoken", content: bytes = RANKS, **files: Any) -> LoadedTokenizer:
    return load(bundle_of({name: content} | {f"{key}.json": value for key, value in files.items()}))


def test_a_ranks_file_is_a_tokenizer() -> None:
    tokenizer = qwen_tiktoken()
    assert tokenizer.encoder == "tiktoken"
    assert tokenizer.report.speller == "table"
    assert tokenizer.vocabulary == 151_851
    assert tokenizer.special_tokens["eos_token"] == "<|endoftext|>"
    assert tokenizer.eos_ids == {151_643}
    assert tokenizer.token_text(151_850) == "<|extra_204|>"
    assert tokenizer.token_bytes(0) == b"!"
    assert tokenizer.token_bytes(1 << 40) == b""
    assert tokenizer.decode([9707, 1 << 40, 151_644], skip_special_tokens=True) == "Hello"


def test_begin_of_text_comes_with_the_families_that_have_it() -> None:
    assert list(loaded().encode("hello", add_special_tokens=True)) == [265, 259]
    assert list(loaded().encode("hello", add_special_tokens=False)) == [259]
    without = loaded(tokenizer_config={"add_bos_token": False})
    assert list(without.encode("hello", add_special_tokens=True)) == [259]
    qwen = loaded("qwen.tiktoken")
    assert list(qwen.encode("hello", add_special_tokens=True)) == [259]


def test_special_tokens_in_a_text_are_special() -> None:
    ids = loaded().encode("hello<|eot_id|>hello", add_special_tokens=False)
    assert list(ids) == [259, 265 + 9, 259]
    assert loaded().decode(ids, skip_special_tokens=True) == "hellohello"


def test_special_tokens_of_the_config_replace_the_familys() -> None:
    config = {
        "eos_token": "<end>",
        "added_tokens_decoder": {
            "300": {"content": "<end>", "special": True},
            "301": {"content": "<tool>", "special": False},
        },
    }
    tokenizer = loaded(tokenizer_config=config)
    assert tokenizer.special_ids == {300}
    assert tokenizer.eos_ids == {300}
    assert tokenizer.vocabulary == 302
    ids = tokenizer.encode("hello<tool><end><|eot_id|>", add_special_tokens=True)
    assert list(ids)[:3] == [259, 301, 300]
    assert 300 not in list(ids)[3:]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "hello<tool><|eot_id|>"


def test_kimi_names_the_reserved_ids_that_its_config_leaves_out() -> None:
    config = {
        "tokenizer_class": "TikTokenTokenizer",
        "added_tokens_decoder": {"265": {"content": "[BOS]", "special": True}},
    }
    tokenizer = loaded("tiktoken.model", tokenizer_config=config)
    assert tokenizer.vocabulary == 265 + 256
    assert tokenizer.token_text(266) == "<|reserved_token_266|>"
    assert tokenizer.token_text(265) == "[BOS]"
    assert loaded("kimi.tiktoken").token_text(267) == "<|im_end|>"


@pytest.mark.parametrize(
    ("name", "files", "ranks", "family"),
    [
        ("x.tiktoken", {"config.json": {"model_type": "qwen"}}, 5, "qwen"),
        ("x.tiktoken", {"config.json": {"model_type": "kimi_k2"}}, 5, "kimi"),
        ("x.tiktoken", {"config.json": {"model_type": "llama4"}}, 5, "llama4"),
        ("x.tiktoken", {"tokenizer_config.json": {"tokenizer_class": "QWenTokenizer"}}, 5, "qwen"),
        (
            "x.tiktoken",
            {"tokenizer_config.json": {"tokenizer_class": "TikTokenTokenizer"}},
            5,
            "kimi",
        ),
        ("cl100k_base.tiktoken", {}, 5, "cl100k_base"),
        ("sub/o200k_base.tiktoken", {"config.json": {"model_type": "other"}}, 5, "o200k_base"),
        ("x.tiktoken", {}, 100_256, "cl100k_base"),
        ("x.tiktoken", {}, 199_998, "o200k_base"),
        ("x.tiktoken", {}, 151_643, "qwen"),
        ("x.tiktoken", {"config.json": {"model_type": "llama"}}, 128_000, "llama3"),
        ("x.tiktoken", {}, 200_000, "llama4"),
        ("x.tiktoken", {}, 163_584, "kimi"),
        ("x.tiktoken", {}, 5, None),
    ],
)
def test_a_family_is_known_by_its_neighbours_its_name_or_its_size(
    name: str, files: dict[str, Any], ranks: int, family: str | None
) -> None:
    found = family_of(read_side_files(bundle_of(files)), name, ranks)
    assert (found.name if found is not None else None) == family


@pytest.mark.parametrize(
    ("family", "text", "words"),
    [
        ("cl100k_base", "I'll pay 12345 €\n\n", ["I", "'ll", " pay", " ", "123", "45", " €\n\n"]),
        ("qwen", "I'LL pay 123 €\n", ["I", "'LL", " pay", " ", "1", "2", "3", " €\n"]),
        ("llama3", "a  b 1234 don't", ["a", " ", " b", " ", "123", "4", " don", "'t"]),
        (
            "o200k_base",
            "camelCase HTMLPage don't 中文 /\n",
            ["camel", "Case", " HTMLPage", " don't", " 中文", " /\n"],
        ),
        ("o200k_base", "a.\n//\n b", ["a", ".\n//\n", " b"]),
        ("kimi", "a.\n//\n b", ["a", ".\n", "//\n", " b"]),
        ("llama4", "camelCase 12345", ["camel", "Case", " ", "123", "45"]),
        ("kimi", "汉字abc 中文English", ["汉字", "abc", " ", "中文", "English"]),
    ],
)
def test_each_family_splits_words_as_its_authors_do(
    family: str, text: str, words: list[str]
) -> None:
    """With every word a rank of its own, the ids are the words that the pattern cuts."""
    pieces = list(dict.fromkeys([*(bytes([byte]) for byte in range(256)), *map(str.encode, words)]))
    encoding = tiktoken.Encoding(
        family,
        pat_str=FAMILIES[family].pattern,
        mergeable_ranks={piece: rank for rank, piece in enumerate(pieces)},
        special_tokens={},
    )
    found = [encoding.decode([token_id]) for token_id in encoding.encode(text)]
    assert found == words


def test_known_special_tokens_have_their_published_ids() -> None:
    for family, text, token_id in (
        ("cl100k_base", "<|endofprompt|>", 100_276),
        ("o200k_base", "<|endoftext|>", 199_999),
        ("qwen", "<|im_end|>", 151_645),
        ("qwen", "<|extra_204|>", 151_850),
        ("llama3", "<|eot_id|>", 128_009),
        ("llama3", "<|python_tag|>", 128_010),
        ("llama3", "<|reserved_special_token_246|>", 128_255),
        ("llama4", "<|eot|>", 200_008),
        ("llama4", "<|python_start|>", 200_016),
        ("llama4", "<|finetune_right_pad|>", 200_018),
        ("llama4", "<|text_post_train_reserved_special_token_68|>", 200_079),
        ("kimi", "<|im_end|>", 163_586),
        ("kimi", "<|reserved_token_163839|>", 163_839),
    ):
        assert FAMILIES[family].specials(FAMILIES[family].ranks)[text] == token_id


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(SmgError, match=r"smg-node\[tiktoken\]") as caught:
        loaded()
    assert caught.value.code == "tiktoken_missing"


def test_a_tokenizer_json_beside_it_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    definition = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
    bundle = bundle_of({"tokenizer.json": definition, "x.tiktoken": RANKS})
    assert load(bundle).encoder != "tiktoken"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it has no ranks"),
        (b"\n\n", "it has no ranks"),
        (b"garbage", "line 1 is not a token and its rank"),
        (RANKS + b"aGk=", "line 266 is not a token"),
        (RANKS + b"aGk= x", "line 266"),
        (RANKS + b"aGk= -1", "line 266"),
        (RANKS + b" 999", "line 266"),
        (RANKS + b"?!? 999", "line 266"),
        (RANKS + b"aGk= 99999999999", "line 266"),
        (RANKS + b"aGk= 3", "one of them twice"),
        (RANKS[RANKS.index(b"\n") + 1 :], "no rank for the byte 0"),
        (RANKS + b"aGk= 4294967296", "largest id is 4294967296"),
    ],
)
def test_a_file_that_is_no_ranks_file_is_one_clear_error(content: bytes, said: str) -> None:
    with pytest.raises(SmgError) as caught:
        loaded(content=content)
    assert said in caught.value.message
    assert caught.value.code == "tokenizer_invalid"


def test_an_unknown_family_says_which_are_known() -> None:
    with pytest.raises(
        SmgError, match=r"265 ranks and is of no known family \(cl100k_base, o200k_base"
    ):
        loaded("mystery.tiktoken")


@pytest.mark.parametrize(
    "added",
    [
        {"5": {"content": "<a>"}},
        {"300": {"content": "<a>"}, "301": {"content": "<a>"}},
        {"300": {"content": "<a>"}, "0300": {"content": "<b>"}},
        {"4294967295": {"content": "<a>"}},
    ],
)
def test_impossible_added_tokens_are_one_clear_error(added: dict[str, Any]) -> None:
    with pytest.raises(SmgError) as caught:
        loaded(tokenizer_config={"added_tokens_decoder": added})
    assert caught.value.code == "tokenizer_invalid"


def test_a_text_that_is_not_whole_unicode_is_refused() -> None:
    with pytest.raises(SmgError, match="lone surrogate at character 2") as caught:
        loaded().encode("ab\udfff", add_special_tokens=False)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


def test_a_run_that_the_pattern_engine_gives_up_on_is_encoded_in_pieces() -> None:
    """A million spaces exhaust its stack; nothing is lost or invented."""
    text = " " * 1_000_000 + "x"
    ids = qwen_tiktoken().encode(text, add_special_tokens=False)
    assert qwen_tiktoken().decode(ids, skip_special_tokens=False) == text
    with pytest.raises(ValueError, match="stack"):
        encoding_of(qwen_tiktoken()).encode(text)


def encoding_of(tokenizer: LoadedTokenizer) -> tiktoken.Encoding:
    found: tiktoken.Encoding = tokenizer.source._encoding  # type: ignore[attr-defined]  # its own
    return found


def test_runs_are_cut_as_kimis_authors_cut_them() -> None:
    assert list(cut_runs("short", 25)) == ["short"]
    assert list(cut_runs("a" * 7 + " " * 4 + "b" * 3, 3)) == [
        "aaa",
        "aaa",
        "a   ",
        " bbb",
    ]
    assert list(cut_runs("ab cd", 2)) == ["ab cd"]
    long = "word " * 170_000
    pieces = list(cut_runs(long, 25_000))
    assert "".join(pieces) == long
    assert [len(piece) for piece in pieces] == [400_000, 400_000, 50_000]


def test_texts_that_are_composed_first_cannot_be_cut_for_l1() -> None:
    assert prefix_cache(qwen_tiktoken(), max_bytes=1 << 20, seed=1)[0] is None
    l1, _ = prefix_cache(loaded(), max_bytes=1 << 20, seed=1)
    assert l1 is not None
    text = "hello<|eot_id|> w中<|eot_id|>hello 111"
    for _ in range(2):
        assert l1.encode(text) == loaded().encode(text, add_special_tokens=False)
        l1.settle()
    assert l1.figures().hits == 3


def test_special_tokens_that_begin_alike_are_not_cut_at() -> None:
    added = {"300": {"content": "<a"}, "301": {"content": "<a>"}}
    tokenizer = loaded(tokenizer_config={"added_tokens_decoder": added})
    assert "begin alike" in tokenizer.borders.why_not


def test_ranks_are_read_as_they_are_written() -> None:
    ranks = read_ranks(qwen_tiktoken_bundle().files["qwen.tiktoken"], "qwen")
    assert len(ranks) == 151_643
    assert ranks[b"!"] == 0
    assert max(ranks.values()) == 151_642
