"""The Embeddings API for engines: what it takes, and how vectors are spelled."""

import json
from array import array
from base64 import b64decode
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import TextPrompt, TokenPrompt
from smg_node.dialects.embeddings.answer import embeddings_answer
from smg_node.dialects.embeddings.reader import INPUTS_MAX, read_embeddings
from smg_node.dialects.options import ReaderOptions

OPTIONS = ReaderOptions()


def read(**body: Any) -> Any:
    return read_embeddings({"model": "m", **body}, OPTIONS)


def test_all_four_forms_of_input_are_read() -> None:
    assert read(input="a").prompts == (TextPrompt("a", True, "input"),)
    assert [prompt.text for prompt in read(input=["a", "b"]).prompts] == ["a", "b"]
    [ids] = read(input=[1, 2]).prompts
    assert isinstance(ids, TokenPrompt)
    assert list(ids.ids) == [1, 2]
    assert [list(prompt.ids) for prompt in read(input=[[1], [2, 3]]).prompts] == [[1], [2, 3]]


def test_vectors_are_numbers_unless_packed_ones_are_wanted() -> None:
    assert not read(input="a").packed
    assert not read(input="a", encoding_format="float").packed
    assert read(input="a", encoding_format="base64", user="me").packed
    assert read(input="a", user="me").ignored == ("user",)


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({}, "input", "missing_required_parameter"),
        ({"input": []}, "input", "invalid_value"),
        ({"input": 5}, "input", "invalid_type"),
        ({"input": ["a"] * (INPUTS_MAX + 1)}, "input", "invalid_value"),
        ({"input": ["a", 5]}, "input[1]", "invalid_type"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "invalid_value"),
        ({"input": "a", "dimensions": 0}, "dimensions", "invalid_value"),
        ({"input": "a", "dimensions": "64"}, "dimensions", "invalid_type"),
        ({"input": "a", "model": ""}, "model", "invalid_value"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], where: str, code: str) -> None:
    with pytest.raises(SmgError) as caught:
        read(**body)
    assert (caught.value.where, caught.value.code) == (where, code)


def test_both_spellings_hold_the_same_numbers_in_the_order_of_the_inputs() -> None:
    vectors = [array("f", [0.5, -2.0]).tobytes(), array("f", [1.25, 0.0]).tobytes()]
    plain = json.loads(embeddings_answer("m", vectors, packed=False, prompt_tokens=3))
    packed = json.loads(embeddings_answer("m", vectors, packed=True, prompt_tokens=3))
    assert [row["embedding"] for row in plain["data"]] == [[0.5, -2.0], [1.25, 0.0]]
    assert [b64decode(row["embedding"]) for row in packed["data"]] == vectors
    assert [row["index"] for row in packed["data"]] == [0, 1]
    assert plain["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
