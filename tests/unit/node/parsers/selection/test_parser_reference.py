"""Parsers and their other names: one list, for the page, for errors and for what is taken."""

from pathlib import Path

import pytest

from smg_node.core.errors import SmgError
from smg_node.parsers.selection.parser_labels import (
    parser_trouble,
    reasoning_named,
    reasoning_names,
    tool_names,
    tools_named,
)
from smg_node.parsers.selection.parser_reference import render_parsers_reference

_PAGE = Path(__file__).parents[5] / "deploy/reference/parsers.md"


def test_the_page_of_parsers_is_current() -> None:
    assert _PAGE.read_text(encoding="utf-8") == render_parsers_reference(), "run: make reference"


def test_every_listed_name_means_its_parser() -> None:
    for name, labels in reasoning_names().items():
        assert {reasoning_named(each)[0] for each in (name, *labels)} == {name}
    for name, labels in tool_names().items():
        assert {tools_named(each) for each in (name, *labels)} == {name}


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("hermess", "did you mean 'hermes'?"),
        ("qwen3-codr", "did you mean 'qwen3_coder'?"),
        ("llama4_pythonik", "did you mean 'llama4_pythonic'?"),
    ],
)
def test_a_misspelled_name_is_told_the_nearest_of_all_names(said: str, hint: str) -> None:
    message = f"no tool parser is called {said!r}; {hint}"
    assert parser_trouble("tool_parser", said) == message
    with pytest.raises(SmgError, match="no tool parser is called"):
        tools_named(said)


def test_a_name_that_is_near_to_none_is_told_all_with_their_other_names() -> None:
    told = parser_trouble("reasoning_parser", "0000")
    assert told.startswith(
        "no reasoning parser is called '0000'; known, with other names of theirs: "
    )
    assert "harmony (gpt_oss openai openai_gptoss)" in told
    assert "deepseek_r1" in told
