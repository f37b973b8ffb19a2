"""Any conversation, any template, any constraint: a text or our error."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Constraint, TextPart, Tool, ToolCall, Turn
from smg_node.prompts.constraints.constraint_check import check_constraint
from smg_node.prompts.constraints.regex_size import PatternError, pattern_states
from smg_node.prompts.jinja.chat_template import TemplateError
from support.models.prompt_corpus import NAMES, NOW, compiled, renderer, source
from support.tools.example_counts import example_count

T = TypeVar("T")

TEXT = st.text(max_size=20) | st.sampled_from(
    ["", " ", "\n", "</think>", "<tool_response>x", "{{ 1 }}", "None", "😀", "a" * 3000, "\ud800"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "properties", "items", "enum"]), inner)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=6), JSON, max_size=3)
PARTS = st.lists(TEXT.map(TextPart), max_size=3).map(tuple)
CALLS = st.builds(
    ToolCall,
    st.sampled_from(["abcde1234", "x", ""]) | TEXT,
    TEXT,
    OBJECTS.map(lambda value: json.dumps(value)) | TEXT,
)
TURNS = st.builds(
    Turn,
    st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]),
    st.none() | TEXT | PARTS,
    name=st.none() | TEXT,
    reasoning=st.none() | TEXT,
    calls=st.lists(CALLS, max_size=2).map(tuple),
    answers_call=st.none() | st.sampled_from(["abcde1234", "x"]),
    extra=OBJECTS,
)
TOOLS = st.builds(Tool, TEXT, st.none() | TEXT, st.none() | OBJECTS, st.booleans())
PROMPTS = st.builds(
    ChatPrompt,
    st.lists(TURNS, max_size=6).map(tuple),
    tools=st.lists(TOOLS, max_size=2).map(tuple),
    kwargs=st.dictionaries(
        st.sampled_from(["enable_thinking", "reasoning_effort", "date_string"]), JSON
    ),
    documents=st.none() | st.lists(OBJECTS, max_size=2).map(tuple),
    add_generation_prompt=st.booleans(),
    continue_final_message=st.booleans(),
)
RENDERERS = {name: renderer(source(name)) for name in NAMES}


def _outcome(action: Callable[[], T]) -> T | SmgError:
    try:
        return action()
    except SmgError as error:
        return error


def _printed(text: str, variables: dict[str, Any], **limits: Any) -> str | TemplateError:
    try:
        return compiled(text, **limits).render(variables)
    except TemplateError as error:
        return error


@pytest.mark.parametrize("name", NAMES)
@given(prompt=PROMPTS)
@settings(max_examples=60, deadline=None)
def test_any_conversation_gives_a_text_or_our_error(name: str, prompt: ChatPrompt) -> None:
    outcome = _outcome(lambda: RENDERERS[name].render(prompt, now=NOW))
    if isinstance(outcome, SmgError):
        assert outcome.status in (400, 413)
        assert outcome.message.encode()
    else:
        assert len(outcome.encode()) <= 16 << 20


# One indents what it is given, the lines of the mark included.
@pytest.mark.parametrize("name", sorted({*NAMES} - {"python_calls"}))
@given(said=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
@settings(max_examples=30, deadline=None)
def test_what_is_continued_is_the_beginning_of_the_finished_answer(name: str, said: str) -> None:
    turns = (Turn("user", "Say it"), Turn("assistant", said))
    finished = ChatPrompt(turns, add_generation_prompt=False)
    ours = RENDERERS[name]
    whole = ours.render(finished, now=NOW)
    goes_on = ChatPrompt(turns, add_generation_prompt=False, continue_final_message=True)
    assert whole.startswith(ours.render(goes_on, now=NOW))


# Templates put together from pieces that mean something, and some that do not.
PIECES = st.sampled_from(
    [
        *(
            "{{ ",
            " }}",
            "{% ",
            " %}",
            "{%- ",
            " -%}",
            "{#",
            "#}",
            "x",
            "messages",
            ".",
            "[",
            "]",
            "(",
        ),
        *(
            ")",
            "'a'",
            "1",
            "0",
            "-1",
            "for m in messages",
            "endfor",
            "if x",
            "else",
            "endif",
            "loop",
        ),
        *(
            "set x = ",
            "macro f(a)",
            "endmacro",
            "f(x)",
            "|",
            "join",
            "list",
            "tojson",
            "map('upper')",
        ),
        *(
            " + ",
            " ~ ",
            " * ",
            " ** ",
            " % ",
            " == ",
            " in ",
            " is ",
            "string",
            "not ",
            "none",
            ",",
        ),
        *("namespace(x=1)", "set ns.x = ", "content", "role", "m", "generation", "endgeneration"),
        *("call f()", "endcall", "caller()", "filter upper", "endfilter", "raise_exception('r')"),
        *(
            "range(9)",
            "cycler(1, 2)",
            ".next()",
            "format",
            "{",
            "}",
            ":",
            "\n",
            "break",
            "continue",
        ),
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
@settings(max_examples=example_count(400), deadline=None)
def test_any_text_as_a_template_gives_a_text_or_a_template_error(text: str) -> None:
    variables = {"messages": [{"role": "user", "content": "x"}], "x": "x"}
    printed = _printed(text, variables, output_max_bytes=1 << 16, render_max_s=0.5)
    text = printed.message if isinstance(printed, TemplateError) else printed
    assert text.encode().decode() == text


CONSTRAINTS = st.builds(
    Constraint,
    st.sampled_from(["json_schema", "regex", "ebnf", "structural_tag", "choice"]),
    TEXT | JSON.map(lambda value: json.dumps(value)),
    st.just("here"),
)


@given(CONSTRAINTS)
@settings(max_examples=example_count(300), deadline=None)
def test_any_constraint_passes_or_is_our_error_at_its_path(constraint: Constraint) -> None:
    error = _outcome(lambda: check_constraint(constraint))
    if error is not None:
        assert error.status == 400
        assert (error.where or "").startswith("here")


KEYWORDS = st.sampled_from(
    [
        *(
            "type",
            "properties",
            "items",
            "anyOf",
            "$ref",
            "$defs",
            "required",
            "enum",
            "const",
            "not",
        ),
        *(
            "pattern",
            "minLength",
            "additionalProperties",
            "prefixItems",
            "if",
            "$schema",
            "$anchor",
        ),
    ]
)
SCHEMAS = st.recursive(
    st.sampled_from(["string", "object", "#", "#/$defs/a", "#/items", "#x", "http://x", 1, -1, True, None]),
    lambda inner: (
        st.dictionaries(KEYWORDS, inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
        | st.lists(inner, max_size=3)
    ),
    max_leaves=12,
)  # fmt: skip


@given(SCHEMAS)
@settings(max_examples=example_count(300), deadline=None)
def test_any_schema_passes_or_is_our_error(schema: Any) -> None:
    constraint = Constraint("json_schema", json.dumps(schema), "here")
    error = _outcome(lambda: check_constraint(constraint))
    assert error is None or error.code == "invalid_json_schema"


@given(st.text("ab()[]{}|*+?\\^$.-,:=!<>P0123", max_size=30))
@settings(max_examples=example_count(500), deadline=None)
def test_any_pattern_is_counted_or_refused(pattern: str) -> None:
    try:
        states = pattern_states(pattern)
    except PatternError:
        return
    assert 0 <= states <= 1 << 16
