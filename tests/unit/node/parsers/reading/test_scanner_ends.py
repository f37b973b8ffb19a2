"""The end of a text between markers: said at once, and nothing is lost by not asking the format."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.request import Tool
from smg_node.parsers.reading.scanner import Scanner
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing

FORMATS = ("hermes", "json", "pythonic", "mistral", "llama3_json")
PRINTINGS = {
    tool: Printing(Chosen("think", tool, frozenset({"implicit"})), ("<|python_tag|>",))
    for tool in FORMATS
}
WORDS = (
    "a", " ", "\n", "é", "<", "[", "{", "<think>", "</think>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]",
    "<|python_tag|>", '{"name": "look", "arguments": {"a": 1}}', "[look(a=1)]",
)  # fmt: skip


def scanner(tool: str, tail: str) -> Scanner:
    made = PRINTINGS[tool].scanner(
        tools=(Tool("look", parameters={"type": "object"}),),
        calls=True,
        tail=tail,
        new_id=lambda _name, _call: "call_1",
    )
    assert isinstance(made, Scanner)
    return made


@pytest.mark.parametrize("tool", FORMATS)
@given(
    words=st.lists(st.sampled_from(WORDS), max_size=8),
    tail=st.sampled_from(["", "<think>\n", "<think>\n</think>\n"]),
)
def test_an_end_that_is_not_asked_for_has_nothing_to_say(
    tool: str, words: list[str], tail: str
) -> None:
    quick, asked = scanner(tool, tail), scanner(tool, tail)
    asked._restful = False
    for word in words:
        assert quick.feed(word) == asked.feed(word)
    assert list(quick.finish()) == list(asked.finish())
    assert quick.reader.notes == asked.reader.notes
    assert quick.reader.out.calls == asked.reader.out.calls
