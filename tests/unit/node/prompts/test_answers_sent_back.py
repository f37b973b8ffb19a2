"""Whatever a model answered can be sent back: every template takes every answer, and shows what it called."""

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.request import ChatPrompt, ToolCall, Turn
from smg_node.prompts.renderer import Renderer
from support.models.family_templates import FAMILIES
from support.models.prompt_corpus import FOLDER, NAMES, NOW, TIDE, renderer

# An earlier template prints no name of a function but its id, or knows no calls at all.
_NAMELESS = frozenset({"kimi_k2", "documents", "parts_only"})
_UNSEEN = frozenset({"documents", "parts_only"})
ODD_ARGUMENTS = [
    "", "{}", '{"a": 1}', '{"a": "é 漢"}', '{"a": "\\ud800"}', '{"a": "\\ud83d\\ude00"}', '{"a": NaN}', '{"a": [-Infinity]}',
    '{"a": "x\ny"}', '{"a": 1', '{"a": "cut', '{"a":', "{", "[1]", "null", "plain words", '"text"', '{"a": 1}}', "\x00",
]  # fmt: skip


@cache
def template(name: str) -> Renderer:
    family = FAMILIES.get(name)
    return renderer(
        (FOLDER / "templates" / f"{name}.jinja").read_text() if family is None else family.template
    )


@st.composite
def answers(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Draw an answer and what a client sends after it."""
    count = draw(st.integers(0, 3))
    said = draw(st.sampled_from(("Let me see.", " spaced \n", "")))
    calls = tuple(
        ToolCall(f"abcde000{at}", f"call_number_{at}", draw(st.sampled_from(ODD_ARGUMENTS)))
        for at in range(count)
    )
    thought = draw(st.sampled_from((None, "Hm.", "<think>")))
    answer = Turn("assistant", said or (None if calls else "So."), reasoning=thought, calls=calls)
    results = [
        Turn("tool", f"result {at}", answers_call=call.call_id) for at, call in enumerate(calls)
    ]
    if draw(st.booleans()):
        results.reverse()
    after = [Turn("user", "And now?")] if not calls or draw(st.booleans()) else []
    return (Turn("user", "Hello"), answer, *results, *after)


@pytest.mark.parametrize("name", [*NAMES, *FAMILIES])
@given(turns=answers())
@settings(max_examples=25, deadline=None)
def test_every_template_takes_every_answer_and_shows_its_calls_and_results(
    name: str, turns: tuple[Turn, ...]
) -> None:
    text = template(name).render(ChatPrompt(turns, tools=(TIDE,)), now=NOW)
    for at, call in enumerate(turns[1].calls):
        assert f"result {at}" in text
        assert name in _NAMELESS or call.name in text


@pytest.mark.parametrize("name", [name for name in [*NAMES, *FAMILIES] if name not in _UNSEEN])
@pytest.mark.parametrize("cut", ['{"place": "Bre', "plain words", '["place"]'])
def test_arguments_that_are_no_object_are_shown_as_their_text(name: str, cut: str) -> None:
    call = ToolCall("abcde0001", "get_tide", cut)
    turns = (
        Turn("user", "Hello"),
        Turn("assistant", None, calls=(call,)),
        Turn("tool", "fine", answers_call=call.call_id),
    )
    text = template(name).render(ChatPrompt(turns, tools=(TIDE,)), now=NOW)
    # Twice quoted where the call as a whole is printed as JSON, in a message that is text.
    assert any(form in text for form in (cut, json.dumps(cut), repr(cut)))


@pytest.mark.parametrize("name", [name for name in [*NAMES, *FAMILIES] if name not in _UNSEEN])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('{"place": "Brest \\ud800 harbour"}', ("Brest \ufffd harbour", "Brest \\ud800 harbour")),
        ('{"height": NaN, "place": "Brest"}', ("NaN", "nan")),
    ],
)
def test_arguments_that_are_not_quite_json_are_shown_whole(
    name: str, said: str, shown: tuple[str, ...]
) -> None:
    call = ToolCall("abcde0001", "get_tide", said)
    turns = (
        Turn("user", "Hello"),
        Turn("assistant", None, calls=(call,)),
        Turn("tool", "fine", answers_call=call.call_id),
    )
    text = template(name).render(ChatPrompt(turns, tools=(TIDE,)), now=NOW)
    assert any(form in text for form in shown)
    assert "Brest" in text


def test_a_template_that_takes_one_call_a_message_is_shown_several_one_by_one() -> None:
    calls = tuple(ToolCall(f"abcde000{at}", f"f{at}", "{}") for at in range(2))
    results = tuple(Turn("tool", f"r{at}", answers_call=f"abcde000{at}") for at in range(2))
    turns = (Turn("user", "q"), Turn("assistant", "See.", calls=calls), *results)
    apart = (
        Turn("user", "q"),
        Turn("assistant", "See.", calls=calls[:1]),
        results[0],
        Turn("assistant", None, calls=calls[1:]),
        results[1],
    )
    llama = template("llama")
    assert llama.facts().one_call
    assert llama.render(ChatPrompt(turns), now=NOW) == llama.render(ChatPrompt(apart), now=NOW)


def test_a_template_that_forgets_all_calls_but_the_first_is_shown_them_one_by_one() -> None:
    forgetful = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
        "{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}"
    )
    calls = tuple(ToolCall(f"abcde000{at}", f"f{at}", "{}") for at in range(3))
    text = renderer(forgetful).render(
        ChatPrompt((Turn("user", "q"), Turn("assistant", "", calls=calls))), now=NOW
    )
    assert text == "<user>q<assistant>f0<assistant>f1<assistant>f2"
