"""Models as tools: names, arguments, and what an answer becomes."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.answer import Answer, Choice
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockKind,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.options import ReaderOptions
from smg_node.mcp.serving.model_tools import ArgumentError, answered, chat_body, model_tools

NAMES: Final = st.text("ab/._-", min_size=1, max_size=70)


def names(*models: str, plain: bool = True) -> list[str]:
    return [tool.name for tool in model_tools(dict.fromkeys(models, ""), plain=plain)]


def test_a_tool_is_called_as_its_model_where_that_can_be() -> None:
    assert names("qwen3-8b") == ["qwen3-8b"]
    assert names("qwen3-8b", plain=False) == ["models__qwen3-8b"]
    assert names("Qwen/Qwen3.5-8B") == ["Qwen_Qwen3_5-8B"]


def test_models_whose_names_become_the_same_are_told_apart_and_the_exact_one_keeps_it() -> None:
    first, second, third = names("a.b", "a/b", "a_b")
    assert third == "a_b"
    assert len({first, second, third}) == 3
    assert all(name.startswith("a_b_") for name in (first, second))
    assert names("a/b", "a_b")[0] == second


@given(st.sets(NAMES, max_size=12), st.booleans())
def test_names_are_valid_and_unique_and_say_the_same_again(models: set[str], plain: bool) -> None:
    found = names(*sorted(models), plain=plain)
    assert len(set(found)) == len(models)
    assert found == names(*sorted(models, reverse=True), plain=plain)
    assert all(
        len(name) <= 64 and name.replace("-", "_").replace("_", "a").isalnum() for name in found
    )


def test_a_row_says_what_the_operator_says_else_that_it_answers() -> None:
    said, unsaid = model_tools({"a": "Knows plants.", "b": ""}, plain=True)
    assert said.row()["description"] == "Knows plants."
    assert unsaid.row()["description"] == "Asks the model b: returns its answer."
    schema = said.row()["inputSchema"]
    assert schema["type"] == "object"
    # Vendors' APIs refuse tools with one of these at the top of a schema.
    assert not {"anyOf", "oneOf", "allOf"} & set(schema)


def test_a_prompt_and_a_system_text_become_a_conversation() -> None:
    told = {"prompt": "Why?", "system": "Be brief.", "max_tokens": 5, "seed": None}
    assert chat_body("m", told, streamed=True) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Why?"},
        ],
        "stream": True,
        "max_tokens": 5,
    }


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, "give a prompt or messages"),
        ({"prompt": None}, "give a prompt or messages"),
        ({"prompt": "x", "messages": []}, "give a prompt or messages"),
        ({"prompt": 3}, "prompt must be a string"),
        ({"prompt": "x", "system": []}, "system must be a string"),
        ({"messages": [], "system": "x"}, "system stands beside a prompt"),
        ({"prompt": "x", "tools": []}, "'tools' is none of prompt, system, messages"),
        ({"prompt": "x", "model": "other"}, "'model' is none of"),
        ({"prompt": "x", "stream": True}, "'stream' is none of"),
    ],
)
def test_what_is_no_argument_is_named(told: dict[str, Any], why: str) -> None:
    with pytest.raises(ArgumentError, match=why):
        chat_body("m", told, streamed=False)


def test_every_argument_of_the_schema_is_one_of_a_chat() -> None:
    told = {
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["."],
        "seed": 3,
    }
    read = ChatReader(ReaderOptions()).read(chat_body("m", told, streamed=False)).request
    sampling = read.sampling
    assert (sampling.max_tokens, sampling.temperature, sampling.top_p) == (7, 0.5, 0.9)
    assert (sampling.stop, sampling.seed, read.stream) == ((".",), 3, False)


def answer(
    *blocks: tuple[BlockKind, str], reason: FinishReason = "stop", tokens: int = 2
) -> Answer:
    ended = [BlockEnd(0, at, kind, said) for at, (kind, said) in enumerate(blocks)]
    return Answer(
        Begin("1", "m", 1, 3), [Choice(ended, finish=Finish(0, reason))], Usage(3, tokens, 0)
    )


def test_a_result_is_the_text_without_thoughts_and_says_how_it_ended() -> None:
    result = answered(answer(("reasoning", "hm"), ("text", "Yes"), ("text", "."), reason="length"))
    assert result == {
        "content": [{"type": "text", "text": "Yes."}],
        "_meta": {
            "smg-node/finish-reason": "length",
            "smg-node/usage": {"prompt_tokens": 3, "completion_tokens": 2},
        },
    }
    assert answered(answer(("refusal", "I may not.")))["content"][0]["text"] == "I may not."


def test_nothing_but_thoughts_is_a_failure_and_nothing_at_all_is_not() -> None:
    result = answered(answer(("reasoning", "hm"), reason="length", tokens=9))
    assert result["isError"] is True
    assert "all of its 9 tokens" in result["content"][0]["text"]
    assert "isError" not in answered(answer())
