"""tokenizer.json in all its forms, and what is done with one that is none."""

import json
from array import array
from collections.abc import Callable
from typing import Any

import fastokens
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.tokens.decoding.reference_decoder import ReferenceSpeller
from smg_node.tokens.encoders import ReferenceEncoder
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from smg_node.tokens.loader import load
from smg_node.tokens.tokenizer import Tokenizer
from support.models.vocabulary import (
    added_token,
    bundle_of,
    llama2_json,
    qwen,
    small,
    small_reference,
)

Change = Callable[[dict[str, Any]], object]


def loaded(*changes: Change, encoder: str = "auto", **files: Any) -> LoadedTokenizer:
    """Return the Llama-like vocabulary after some changes to its tokenizer.json."""
    definition = json.loads(llama2_json())
    for change in changes:
        change(definition)
    bundle = bundle_of({"tokenizer.json": definition} | {f"{k}.json": v for k, v in files.items()})
    assert encoder in ("auto", "tokenizers")
    return load(bundle, encoder="auto" if encoder == "auto" else "tokenizers")


def test_a_loaded_tokenizer_is_a_tokenizer() -> None:
    tokenizer: Tokenizer = qwen()
    assert tokenizer.vocabulary == 151_646
    assert tokenizer.special_ids == {151_643, 151_644, 151_645}
    assert tokenizer.eos_ids == {151_643, 151_645}
    assert (tokenizer.bos, tokenizer.eos) == (None, "<|im_end|>")
    assert tokenizer.special_tokens == {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    assert (tokenizer.encoder, len(tokenizer.digest)) == ("fastokens", 64)
    ids = tokenizer.encode("Hi 😀", add_special_tokens=True)
    assert isinstance(ids, array)
    assert ids.typecode == "I"


def test_the_settings_may_ask_for_the_reference_encoder() -> None:
    assert loaded(encoder="tokenizers").encoder == "tokenizers"
    assert loaded(encoder="tokenizers").report.why_encoder == "chosen by the settings"


def test_truncation_and_padding_of_the_file_change_no_ids() -> None:
    def limit(definition: dict[str, Any]) -> None:
        definition["truncation"] = {
            "direction": "Right",
            "max_length": 4,
            "strategy": "LongestFirst",
            "stride": 0,
        }
        definition["padding"] = {
            "strategy": {"Fixed": 64},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "<unk>",
        }

    text = "hello world, this is more than four tokens"
    wanted = small("llama2").encode(text, add_special_tokens=True)
    assert 8 < len(wanted) < 64
    for encoder in ("auto", "tokenizers"):
        assert loaded(limit, encoder=encoder).encode(text, add_special_tokens=True) == wanted


def test_special_tokens_go_around_only_when_asked() -> None:
    tokenizer = small("llama2")
    plain = tokenizer.encode("hello", add_special_tokens=False)
    assert tokenizer.encode("hello", add_special_tokens=True) == array("I", [1, *plain])
    assert tokenizer.encode("", add_special_tokens=False) == array("I")
    assert tokenizer.encode("", add_special_tokens=True) == array("I", [1])


@pytest.mark.parametrize(
    ("config", "before", "after"),
    [
        ({"add_bos_token": False}, [], []),
        ({"add_bos_token": True}, [1], []),
        ({"add_bos_token": True, "add_eos_token": True}, [1], [2]),
        ({"add_eos_token": True}, [], [2]),
        ({"add_bos_token": None}, [1], []),
    ],
)
@pytest.mark.parametrize("encoder", ["auto", "tokenizers"])
def test_the_config_decides_what_goes_around_a_text(
    encoder: str, config: dict[str, Any], before: list[int], after: list[int]
) -> None:
    roles = {"bos_token": "<s>", "eos_token": "</s>"}
    tokenizer = loaded(encoder=encoder, tokenizer_config=roles | config)
    plain = tokenizer.encode("hello", add_special_tokens=False)
    wanted = array("I", [*before, *plain, *after])
    assert tokenizer.encode("hello", add_special_tokens=True) == wanted


def test_a_role_the_vocabulary_does_not_have_goes_around_nothing() -> None:
    tokenizer = loaded(tokenizer_config={"bos_token": "<nowhere>", "add_bos_token": True})
    plain = tokenizer.encode("hello", add_special_tokens=False)
    assert tokenizer.encode("hello", add_special_tokens=True) == plain


def test_added_tokens_that_only_the_config_knows_are_added() -> None:
    base = small("llama2").vocabulary
    entries = {
        str(base + place): {"content": text, "special": place == 0}
        for place, text in enumerate(("<|turn|>", "<|call|>"))
    } | {"1": {"content": "<s>", "special": True}}
    for encoder in ("auto", "tokenizers"):
        tokenizer = loaded(encoder=encoder, tokenizer_config={"added_tokens_decoder": entries})
        assert tokenizer.vocabulary == base + 2
        assert tokenizer.special_ids == {0, 1, 2, base}
        ids = tokenizer.encode("<|turn|>hello<|call|>", add_special_tokens=False)
        assert (ids[0], ids[-1]) == (base, base + 1)
        assert tokenizer.decode(ids, skip_special_tokens=True) == "hello<|call|>"


def test_added_tokens_with_impossible_ids_are_left_alone() -> None:
    base = small("llama2").vocabulary
    entries = {str(base + 700): {"content": "<|turn|>", "special": True}}
    tokenizer = loaded(tokenizer_config={"added_tokens_decoder": entries})
    assert tokenizer.vocabulary == base


def test_an_encoder_that_cannot_read_the_file_or_differs_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "cannot read it" in small("unigram").report.why_encoder

    right = fastokens.Tokenizer.from_json_str(llama2_json().decode())

    class Wrong:
        @classmethod
        def from_json_str(cls, definition: str) -> "Wrong":
            return cls()

        def encode_batch_flat(self, texts: list[str], **options: bool) -> tuple[bytes, bytes]:
            flat, offsets = right.encode_batch_flat(texts, **options)
            return (flat[:-4], offsets) if "😀" in texts[0] else (flat, offsets)

    monkeypatch.setattr(fastokens, "Tokenizer", Wrong)
    tokenizer = loaded()
    assert tokenizer.encoder == "tokenizers"
    assert tokenizer.report.why_encoder.startswith("fastokens disagrees: other ids for the probe")
    wanted = small("llama2").encode("a 😀", add_special_tokens=False)
    assert tokenizer.encode("a 😀", add_special_tokens=False) == wanted


def test_the_reference_never_encodes_in_the_way_that_stops_other_threads() -> None:
    class Watched:
        def encode(self, *arguments: object, **options: object) -> None:
            raise AssertionError("this call holds the interpreter")

        def encode_batch_fast(self, texts: list[str], **options: bool) -> list[Any]:
            return tokenizers.Tokenizer.from_str(llama2_json().decode()).encode_batch_fast(
                texts, **options
            )

    encoder = ReferenceEncoder(Watched())  # type: ignore[arg-type]  # stands in for the library's
    assert encoder.encode("hello", add_special_tokens=True)[0] == 1


@pytest.mark.parametrize("name", ["llama2", "unigram"])
def test_a_text_that_is_not_whole_unicode_is_refused(name: str) -> None:
    for tokenizer in (
        small(name),
        load(bundle_of({"tokenizer.json": llama2_json()}), encoder="tokenizers"),
    ):
        with pytest.raises(SmgError, match="lone surrogate at character 1") as caught:
            tokenizer.encode("a\ud800b", add_special_tokens=False)
        assert caught.value.kind is ErrorKind.INVALID_REQUEST


def test_a_vocabulary_that_cannot_express_a_text_refuses_it() -> None:
    words = {"hello": 0, "world": 1}
    definition = {
        "version": "1.0",
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    }
    tokenizer = load(bundle_of({"tokenizer.json": definition}))
    assert list(tokenizer.encode("hello world", add_special_tokens=False)) == [0, 1]
    with pytest.raises(SmgError, match="cannot encode the text") as caught:
        tokenizer.encode("goodbye", add_special_tokens=False)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


@pytest.mark.parametrize(
    ("family", "token", "text", "raw"),
    [
        ("llama2", "▁model", " model", b" model"),
        ("llama2", "<0xE4>", "\ufffd", b"\xe4"),
        ("llama2", "</s>", "</s>", b"</s>"),
        ("unigram", "▁model", " model", b" model"),
        ("wordpiece", "model", " model", b" model"),
        ("wordpiece", "##o", "o", b"o"),
    ],
)
def test_tokens_are_spelled_as_they_look_inside_a_text(
    family: str, token: str, text: str, raw: bytes
) -> None:
    tokenizer = small(family)
    token_id = small_reference(family).token_to_id(token)
    assert token_id is not None
    assert tokenizer.token_text(token_id) == text
    assert tokenizer.token_bytes(token_id) == raw
    for unknown in (tokenizer.vocabulary, 1 << 40, -1):
        assert tokenizer.token_text(unknown) == ""
        assert tokenizer.token_bytes(unknown) == b""


@pytest.mark.parametrize("family", ["llama2", "unigram", "wordpiece"])
def test_unknown_ids_decode_to_nothing(family: str) -> None:
    tokenizer = small(family)
    ids = [5, 1 << 31, tokenizer.vocabulary, 1 << 70, -1, 300]
    known = tokenizer.decode([5, 300], skip_special_tokens=False)
    assert tokenizer.decode(ids, skip_special_tokens=False) == known


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d["added_tokens"].append(added_token(1400, "<m>", lstrip=True)), "neighbours"),
        (lambda d: d["model"].update(dropout=0.1), "random"),
        (
            lambda d: d.update(
                pre_tokenizer={
                    "type": "Sequence",
                    "pretokenizers": [
                        {
                            "type": "Metaspace",
                            "replacement": "▁",
                            "prepend_scheme": "first",
                            "split": True,
                        }
                    ],
                }
            ),
            "start of a text",
        ),
        (lambda d: d["added_tokens"].clear(), "no added tokens"),
    ],
)
def test_where_a_text_must_not_be_cut_the_reason_is_kept(change: Change, why: str) -> None:
    borders = loaded(change, encoder="tokenizers").borders
    assert borders.tokens == ()
    assert why in borders.why_not


def test_a_normalized_added_token_does_not_cut_and_stands_in_no_ones_way() -> None:
    base = small("llama2").vocabulary
    flags = {"normalized": True, "lstrip": True, "special": False}
    borders = loaded(
        lambda d: d["added_tokens"].append(added_token(base, "<m>", **flags)), encoder="tokenizers"
    ).borders
    assert borders.tokens == ("</s>", "<s>", "<unk>")


def test_a_bundle_without_a_tokenizer_says_what_it_has() -> None:
    with pytest.raises(
        SmgError, match=r"neither tokenizer\.json nor a \*\.tiktoken file; it has x"
    ):
        load(bundle_of({"x": b""}))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b'{"model": 5}',
        b'{"model": {"type": "BPE", "vocab": {"a": 4294967295}, "merges": []}}',
        b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}}',
        b'{"model": {"type": "BPE", "vocab": {}, "merges": []}}',
        b'{"added_tokens": {}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}',
        b'{"decoder": ' + b"[" * 5000,
        b'{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(("}, "behavior": "Isolated",'
        b' "invert": false}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}',
    ],
)
def test_a_file_that_is_no_tokenizer_is_one_clear_error(content: bytes) -> None:
    with pytest.raises(SmgError, match=r"tokenizer\.json of a test") as caught:
        load(bundle_of({"tokenizer.json": content}))
    assert caught.value.code == "tokenizer_invalid"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        # The library aborts the process over this one, so it must never see it.
        (lambda d: d["model"].update(continuing_subword_prefix="x"), "without the prefix 'x'"),
        # The fast encoder would make room for two thousand million ids.
        (lambda d: d["added_tokens"][1].update(id=1 << 31), "has the id 2147483648"),
        # A Rust panic, which is no Exception.
        (
            lambda d: d["decoder"]["decoders"][3].update(stop=9, content="e"),
            "index out of bounds",
        ),
        (lambda d: d["post_processor"].update(special_tokens={}), "tokenizer.json of a test: "),
    ],
)
def test_a_file_that_would_break_the_libraries_is_refused(change: Change, said: str) -> None:
    with pytest.raises(SmgError) as caught:
        loaded(change)
    assert said in caught.value.message


@pytest.mark.parametrize("merges", [["a ##b", "ab ##c"], [["a", "##b"], ["ab", "##c"]]])
def test_merges_with_the_prefix_they_should_have_are_fine(merges: list[Any]) -> None:
    model = {
        "type": "BPE",
        "continuing_subword_prefix": "##",
        "vocab": {"a": 0, "##b": 1, "ab": 2, "##c": 3, "abc": 4},
        "merges": merges,
    }
    tokenizer = load(bundle_of({"tokenizer.json": {"version": "1.0", "model": model}}))
    assert list(tokenizer.encode("abc", add_special_tokens=False)) == [4]


def test_a_decoder_that_fails_on_some_sequence_prints_it_as_it_is_spelled() -> None:
    class Moody:
        def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
            if len(ids) > 1:
                raise RuntimeError("not these together")
            return "".join("ab?c"[one] for one in ids)

    speller = ReferenceSpeller(
        Moody(),  # type: ignore[arg-type]  # stands in for the library's
        ["a", "b", None, "c"],
        added={},
        special_ids=frozenset({1}),
    )
    assert speller.decode([0, 1, 2, 0], skip_special_tokens=False) == "aba"
    assert speller.decode([0, 1, 2, 0], skip_special_tokens=True) == "aa"


def leaves(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        items = [*value.items()][:12]
    elif isinstance(value, list):
        items = [*enumerate(value)][:12]
    else:
        return [path]
    return [path, *(deeper for key, inner in items for deeper in leaves(inner, (*path, key)))]


PATHS = leaves(json.loads(llama2_json()))[1:]
junk = st.sampled_from(
    [None, True, -1, 0, 1 << 33, 1.5, "", "x", "▁", [], [1], {}, {"type": "Fuse"}]
)


# The same damage every time: a library that aborts the process must not do so by chance.
@settings(deadline=None, derandomize=True, max_examples=300)
@given(changes=st.lists(st.tuples(st.sampled_from(PATHS), junk), min_size=1, max_size=3))
def test_a_damaged_definition_gives_a_tokenizer_or_the_error(
    changes: list[tuple[tuple[Any, ...], Any]],
) -> None:
    definition = json.loads(llama2_json())
    said = "this model's tokenizer is fine"
    for path, value in changes:
        inner = definition
        try:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    try:
        tokenizer = load(bundle_of({"tokenizer.json": definition}))
        ids = tokenizer.encode("hello <s> 你", add_special_tokens=True)
        tokenizer.decode(ids, skip_special_tokens=True)
        machine = tokenizer.detokenizer(
            prompt_tail=(), skip_special_tokens=False, spaces_between_special_tokens=True
        )
        for token_id in ids:
            machine.feed(token_id)
        machine.finish()
    except SmgError as error:
        said = error.message
    assert said.startswith(("tokenizer.json of a test", "this model's tokenizer"))
