"""The JSON around a tokenizer: what is read from it, and that garbage is one clear error."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.tokens.files.side_files import SideFiles, read_side_files
from support.models.vocabulary import bundle_of
from support.tools.example_counts import example_count

IDS = {"</s>": 2, "<|im_end|>": 7}


def side(**files: Any) -> SideFiles:
    names = {
        "config": "tokenizer_config.json",
        "special_map": "special_tokens_map.json",
        "model": "config.json",
        "generation": "generation_config.json",
    }
    return read_side_files(bundle_of({names[key]: value for key, value in files.items()}))


def test_without_files_there_are_no_roles_and_no_ends() -> None:
    assert side().roles() == {}
    assert side().eos_ids(IDS.get) == frozenset()
    assert side().added_tokens() == []
    assert side().flag("add_bos_token") is None


def test_roles_come_from_both_files_and_the_config_decides() -> None:
    found = side(
        special_map={"bos_token": "<a>", "eos_token": {"content": "<b>", "lstrip": False}},
        config={
            "bos_token": "<s>",
            "pad_token": None,
            "add_bos_token": True,
            "image_token": "<image>",
            "extra_special_tokens": {"audio_token": "<audio>"},
            "model_max_length": 5,
        },
    ).roles()
    assert found == {
        "bos_token": "<s>",
        "eos_token": "<b>",
        "image_token": "<image>",
        "audio_token": "<audio>",
    }


def test_ends_of_text_are_gathered_from_every_file() -> None:
    found = side(
        config={"eos_token": "</s>"},
        model={"eos_token_id": 11, "text_config": {"eos_token_id": [12, 13]}},
        generation={"eos_token_id": [13, 14, None, -1]},
    ).eos_ids(IDS.get)
    assert found == {2, 11, 12, 13, 14}


def test_an_end_of_text_that_the_vocabulary_does_not_have_is_none() -> None:
    assert side(config={"eos_token": "<nowhere>"}).eos_ids(IDS.get) == frozenset()


def test_added_tokens_come_by_id_with_their_flags() -> None:
    tokens = side(
        config={
            "added_tokens_decoder": {
                "10": {"content": "<b>", "special": True},
                "9": {"content": "<a>", "lstrip": True, "special": False},
            }
        }
    ).added_tokens()
    assert [(token.token_id, token.content, token.special) for token in tokens] == [
        (9, "<a>", False),
        (10, "<b>", True),
    ]
    assert tokens[0].flags["lstrip"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config": "{"}, "tokenizer_config.json of a test is not JSON"),
        ({"config": "[1]"}, "tokenizer_config.json of a test is not a JSON object"),
        ({"model": b"\xff\xfe"}, "config.json of a test is not JSON"),
        ({"model": '{"a":' * 5000}, "config.json of a test is not JSON"),
        ({"generation": "null"}, "generation_config.json of a test is not a JSON object"),
        ({"config": {"eos_token": 5}}, "tokenizer_config.json: eos_token must be a token"),
        ({"config": {"bos_token": {"content": []}}}, "bos_token must be a token"),
        ({"config": {"extra_special_tokens": "x"}}, "extra_special_tokens must be an object"),
        ({"config": {"add_bos_token": "yes"}}, "add_bos_token must be true or false"),
        ({"model": {"eos_token_id": "2"}}, "config.json: eos_token_id must be an id or a list"),
        ({"model": {"eos_token_id": [True]}}, "eos_token_id must be an id or a list of ids"),
        ({"model": {"eos_token_id": 1.5}}, "eos_token_id must be an id"),
        ({"model": {"text_config": 3}}, "text_config must be an object"),
        ({"generation": {"eos_token_id": [1] * 9999}}, "lists 9999 ids"),
        ({"config": {"added_tokens_decoder": []}}, "added_tokens_decoder must be an object"),
        ({"config": {"added_tokens_decoder": {"x": {"content": "a"}}}}, "named by an id"),
        (
            {"config": {"added_tokens_decoder": {"1": {"content": ""}}}},
            "added_tokens_decoder.1.content",
        ),
        (
            {"config": {"added_tokens_decoder": {"1": 5}}},
            "added_tokens_decoder.1 must be an object",
        ),
    ],
)
def test_garbage_is_an_error_that_names_file_and_field(files: dict[str, Any], said: str) -> None:
    with pytest.raises(SmgError) as caught:
        use(side(**files))
    assert said in caught.value.message
    assert caught.value.code == "tokenizer_invalid"


def use(found: SideFiles) -> None:
    found.roles()
    found.eos_ids(IDS.get)
    found.added_tokens()
    found.flag("add_bos_token")
    found.word("config.json", "model_type")
    found.word("tokenizer_config.json", "tokenizer_class")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
keys = st.sampled_from(
    [
        *("eos_token", "bos_token", "eos_token_id", "text_config", "added_tokens_decoder"),
        *("extra_special_tokens", "add_bos_token", "model_type", "tokenizer_class"),
    ]
)


@settings(deadline=None, max_examples=example_count(300))
@given(
    files=st.dictionaries(
        st.sampled_from(["config", "special_map", "model", "generation"]),
        st.dictionaries(keys, values).map(json.dumps)
        | values.map(json.dumps)
        | st.binary(max_size=20),
    )
)
def test_any_json_and_any_bytes_give_values_or_the_error(files: dict[str, Any]) -> None:
    said = ""
    try:
        use(side(**files))
    except SmgError as error:
        said = error.message
    assert not said or ".json" in said
