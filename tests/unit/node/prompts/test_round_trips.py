"""What a template prints of an earlier answer, its family's parser reads as that answer again.

So a model is shown its own past as it would print it, and nothing is lost between the two rooms.
"""

import json
from collections.abc import Sequence
from functools import cache

import pytest

from smg_node.core.generation.pieces import Arguments, Call, Piece, Reasoning, Text
from smg_node.core.generation.request import ChatPrompt, ToolCall, Turn
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.prompts.renderer import Renderer
from support.answers.parser_cases import TOOLS, joined
from support.models.family_templates import FAMILIES
from support.models.prompt_corpus import NOW, renderer

_ASKED = Turn("user", "What now? <think>Not a thought.</think> <tool_call>")
_CODE = 'def f(a):\n    return {"x": a < 3, \'y\': "é 🎉"}'
_FULL = {"city": "Ghent", "max": 3, "open": True, "note": None, "tags": ["it's", "art, old"]}


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"call_{name}", name, json.dumps(arguments, ensure_ascii=False))


ANSWERS: dict[str, Turn] = {
    "text": Turn("assistant", "Go at five."),
    "a thought and text": Turn("assistant", "Go at five.", reasoning="Low tide is at six.\nSo earlier."),
    "a call": Turn("assistant", None, calls=(call("get_tide", port="Brest"),)),
    "no arguments": Turn("assistant", None, calls=(call("list_rooms"),)),
    "every type": Turn("assistant", None, calls=(call("find_museum", **_FULL),)),
    "nested": Turn(
        "assistant", None, calls=(call("plan", city="Zürich", days=["Mon"], options={"pace": 2}),)
    ),
    "what looks like something else": Turn(
        "assistant", None, calls=(call("write_file", path="001", text="true"),)
    ),
    "code": Turn("assistant", None, calls=(call("write_file", path="a b.py", text=_CODE),)),
    "a last newline": Turn("assistant", None, calls=(call("write_file", path="x", text="a\n"),)),
    "everything": Turn(
        "assistant",
        "Let me look.",
        reasoning="I need the tides.",
        calls=(call("get_tide", port="Brest"), call("list_rooms"), call("get_tide", port="Ο Πειραιάς")),
    ),
    "a function nobody declared": Turn("assistant", None, calls=(call("nobody.knows-it", a="b", c=1),)),
}  # fmt: skip


@cache
def both_rooms(name: str) -> tuple[Printing, Renderer]:
    """Return how a family's answers are read, and how they are shown."""
    family = FAMILIES[name]
    chosen = Chosen(family.reasoning, family.tools, frozenset(family.options))
    printing = Printing(chosen, [family.stop])
    return printing, renderer(family.template, call_ids=printing.ids)


def read_again(name: str, answer: Turn) -> tuple[Sequence[Piece], str]:
    """Return what the family's parser makes of the answer as its template shows it, and the text of it."""
    printing, ours = both_rooms(name)
    prompt = ours.render(ChatPrompt((_ASKED,)), now=NOW)
    shown = ours.render(ChatPrompt((_ASKED, answer), add_generation_prompt=False), now=NOW)
    tail = prompt.rpartition("<|assistant|>")[2]
    said = shown.rpartition("<|assistant|>")[2].removeprefix(tail)
    scanner = printing.scanner(
        tools=tuple(TOOLS.values()),
        calls=True,
        tail=tail,
        new_id=lambda _name, ordinal: f"call_{ordinal}",
    )
    pieces = [piece for character in said for piece in scanner.feed(character)]
    return joined([*pieces, *scanner.finish()]), said


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("name", FAMILIES)
def test_an_answer_is_read_again_as_it_was(name: str, kind: str) -> None:
    answer = ANSWERS[kind]
    pieces, shown = read_again(name, answer)
    names = [piece.name for piece in pieces if isinstance(piece, Call)]
    assert names == [each.name for each in answer.calls], shown
    arguments = [json.loads(piece.text) for piece in pieces if isinstance(piece, Arguments)]
    assert arguments == [json.loads(each.arguments) for each in answer.calls], shown
    text = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    assert text.strip() == (answer.content or ""), shown
    thought = "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))
    wanted = "" if not FAMILIES[name].thought else answer.reasoning or ""
    assert thought.strip() == wanted, shown
