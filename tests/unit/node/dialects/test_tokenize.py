"""Bodies and answers of tokenize and detokenize."""

import json
from array import array
from dataclasses import dataclass
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, TextPrompt, Tool, Turn
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.tokenize.answer import detokenize_answer, tokenize_answer
from smg_node.dialects.tokenize.reader import (
    DetokenizeBody,
    TokenizeBody,
    read_detokenize,
    read_tokenize,
)

OPTIONS = ReaderOptions()


def tokenize(**body: Any) -> TokenizeBody:
    return read_tokenize({"model": "m", **body}, OPTIONS)


def detokenize(**body: Any) -> DetokenizeBody:
    return read_detokenize({"model": "m", **body}, OPTIONS)


def test_a_prompt_is_read_as_a_completion_would_read_it() -> None:
    assert tokenize(prompt="hi") == TokenizeBody("m", (TextPrompt("hi"),), many=False)
    assert tokenize(prompt="hi", add_special_tokens=False).prompts == (TextPrompt("hi", False),)
    many = tokenize(prompt=["a"])
    assert many == TokenizeBody("m", (TextPrompt("a", where="prompt[0]"),), many=True)


def test_messages_are_read_as_a_chat_would_read_them() -> None:
    body = tokenize(
        messages=[{"role": "user", "content": "hi"}],
        tools=[{"type": "function", "function": {"name": "f"}}],
        chat_template_kwargs={"a": 1},
        add_generation_prompt=False,
    )
    prompt = ChatPrompt(
        (Turn("user", "hi"),), tools=(Tool("f"),), kwargs={"a": 1}, add_generation_prompt=False
    )
    assert body == TokenizeBody("m", (prompt,), many=False)


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({}, "prompt", "missing_required_parameter"),
        (
            {"prompt": "a", "messages": [{"role": "user", "content": "a"}]},
            "messages",
            "invalid_value",
        ),
        ({"prompt": 1}, "prompt", "invalid_type"),
        ({"prompt": []}, "prompt", "invalid_value"),
        ({"prompt": [1, 2]}, "prompt[0]", "invalid_type"),
        ({"prompt": ["a", 2]}, "prompt[1]", "invalid_type"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "missing_required_parameter"),
        ({"prompt": "a", "model": None}, "model", "missing_required_parameter"),
    ],
)
def test_a_mistake_in_a_tokenize_body_has_a_path(
    body: dict[str, Any], where: str, code: str
) -> None:
    with pytest.raises(SmgError) as caught:
        tokenize(**body)
    assert (caught.value.where, caught.value.code) == (where, code)


def test_ids_are_read_alone_or_in_lists() -> None:
    assert detokenize(tokens=[1, 2]) == DetokenizeBody("m", (array("I", [1, 2]),), False, True)
    many = detokenize(tokens=[[1], [2]], skip_special_tokens=False)
    assert many == DetokenizeBody("m", (array("I", [1]), array("I", [2])), True, False)
    assert detokenize(tokens=[]) == DetokenizeBody("m", (), False, True)


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({}, "tokens", "missing_required_parameter"),
        ({"tokens": "a"}, "tokens", "invalid_type"),
        ({"tokens": ["a"]}, "tokens[0]", "invalid_type"),
        ({"tokens": [1, "a"]}, "tokens[1]", "invalid_type"),
        ({"tokens": [-1]}, "tokens[0]", "invalid_value"),
        ({"tokens": [[1], [2**32]]}, "tokens[1][0]", "invalid_value"),
        ({"tokens": [1], "skip_special_tokens": 1}, "skip_special_tokens", "invalid_type"),
    ],
)
def test_a_mistake_in_a_detokenize_body_has_a_path(
    body: dict[str, Any], where: str, code: str
) -> None:
    with pytest.raises(SmgError) as caught:
        detokenize(**body)
    assert (caught.value.where, caught.value.code) == (where, code)


@dataclass(frozen=True)
class Ids:
    ids: "array[int]"
    characters: int


def test_an_answer_has_the_form_of_its_question() -> None:
    one, two = Ids(array("I", [1, 2]), 5), Ids(array("I", [3]), 1)
    assert json.loads(tokenize_answer([one], many=False)) == {
        "tokens": [1, 2],
        "count": 2,
        "char_count": 5,
    }
    assert json.loads(tokenize_answer([one, two], many=True)) == {
        "tokens": [[1, 2], [3]],
        "count": [2, 1],
        "char_count": [5, 1],
    }
    assert json.loads(detokenize_answer(["a"], many=False)) == {"text": "a"}
    assert json.loads(detokenize_answer([], many=False)) == {"text": ""}
    assert json.loads(detokenize_answer(["a", "b"], many=True)) == {"text": ["a", "b"]}
