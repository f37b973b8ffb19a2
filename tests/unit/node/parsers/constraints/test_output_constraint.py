"""What an engine is told so that calls and answers have the form that was asked for."""

import json
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Constraint, Tool, ToolChoice
from smg_node.parsers.constraints.output_constraint import Forced, force, held_tools
from smg_node.parsers.constraints.structural_tags import Grammars
from smg_node.parsers.selection.chosen_formats import Chosen
from smg_node.parsers.selection.model_formats import Printing
from smg_node.parsers.selection.registry import known_joint, known_tools
from smg_node.prompts.constraints.constraint_check import check_constraint

KINDS = frozenset({"json_object", "json_schema", "regex", "ebnf", "structural_tag", "choice"})
NEW = Grammars(KINDS, "formats")
OLD = Grammars(KINDS, "structures", can_wait=True)
GATED = Grammars(KINDS, "formats", waits=True)
UNABLE = Grammars()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FIND, ROOMS = Tool("find_museum", None, SCHEMA), Tool("list_rooms")
STRICT = Tool("find_museum", None, SCHEMA, strict=True)
FORM = Constraint("json_schema", json.dumps(SCHEMA), "response_format")
HERMES = Printing(Chosen("think", "hermes"))
NO_TAGS = Printing(Chosen("think", "pythonic"))
REQUIRED = ToolChoice("required")
NAMED = ToolChoice("named", "find_museum")
ONE = ToolChoice("required", parallel=False)
INSIDE, CLOSED = "<think>\n", "</think>\n"


def forced(
    choice: ToolChoice = REQUIRED,
    *tools: Tool,
    asked: Constraint | None = None,
    printing: Printing = HERMES,
    grammars: Grammars = NEW,
    tail: str = CLOSED,
) -> Forced:
    prompt = ChatPrompt((), tools or (FIND, ROOMS), choice=choice)
    found = force(prompt, asked, printing, grammars, tail=tail)
    if found.constraint is not None:
        check_constraint(found.constraint)
    return found


def said(found: Forced) -> Any:
    assert found.constraint is not None
    return json.loads(found.constraint.value)


def form(found: Forced) -> Any:
    assert found.constraint is not None
    assert found.constraint.kind == "structural_tag"
    return said(found)["format"]


def call(name: str, schema: Any) -> dict[str, Any]:
    return {
        "type": "tag",
        "begin": f'<tool_call>\n{{"name": "{name}", "arguments": ',
        "content": {"type": "json_schema", "json_schema": schema},
        "end": "}\n</tool_call>",
    }


CALLS = [call("find_museum", SCHEMA), call("list_rooms", {"type": "object", "properties": {}})]
LOOSE = [call("find_museum", True), call("list_rooms", True)]


# ── Calls ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", ["auto", "none"])
def test_nothing_is_sent_where_nothing_has_to_be_held(mode: Any) -> None:
    assert forced(ToolChoice(mode)) == Forced()
    assert forced(ToolChoice(mode, parallel=False)) == Forced()
    assert forced(ToolChoice("none"), STRICT) == Forced()


def test_a_required_call_is_a_structural_tag_with_at_least_one() -> None:
    found = forced()
    assert form(found) == {
        "type": "triggered_tags",
        "triggers": ["<tool_call>"],
        "tags": CALLS,
        "at_least_one": True,
        "stop_after_first": False,
    }
    assert (found.ignored, found.unheld, found.tail) == ((), (), "")
    assert found.constraint is not None
    assert (found.constraint.where, found.constraint.begins) == ("tool_choice", "first_token")


def test_a_named_call_is_one_tag_and_the_end() -> None:
    found = form(forced(NAMED))
    assert found["tags"] == CALLS[:1]
    assert (found["at_least_one"], found["stop_after_first"]) == (True, True)


def test_without_parallel_calls_the_first_ends_it() -> None:
    assert form(forced(ONE))["stop_after_first"] is True


def test_only_the_allowed_tools_may_be_called() -> None:
    allowed = ToolChoice("required", allowed=("list_rooms",))
    assert form(forced(allowed))["tags"] == CALLS[1:]
    offered = form(forced(ToolChoice("auto", allowed=("list_rooms",))))
    assert offered["tags"] == LOOSE[1:]
    assert offered["at_least_one"] is False


def test_strict_tools_are_held_to_their_schemas_and_others_are_not() -> None:
    found = form(forced(ToolChoice(), STRICT, ROOMS))
    assert found["tags"] == [CALLS[0], LOOSE[1]]
    assert (found["at_least_one"], found["stop_after_first"]) == (False, False)
    assert form(forced(ToolChoice(parallel=False), STRICT))["stop_after_first"] is True
    assert forced(ToolChoice(), STRICT, ROOMS).expect == "native"


def test_a_format_without_tags_is_forced_as_json() -> None:
    found = forced(printing=NO_TAGS)
    assert found.constraint is not None
    assert found.constraint.kind == "json_schema"
    assert found.expect == "json_array"
    assert said(found)["minItems"] == 1
    assert [each["properties"]["name"] for each in said(found)["items"]["anyOf"]] == [
        {"const": "find_museum"},
        {"const": "list_rooms"},
    ]
    assert "maxItems" not in said(found)
    assert said(forced(ONE, printing=NO_TAGS))["maxItems"] == 1


def test_a_named_function_is_then_its_bare_arguments() -> None:
    found = forced(NAMED, printing=NO_TAGS)
    assert (found.expect, found.named) == ("bare_arguments", "find_museum")
    assert said(found) == SCHEMA
    nothing = forced(ToolChoice("named", "list_rooms"), printing=NO_TAGS)
    assert said(nothing) == {"type": "object", "properties": {}}


def test_strict_tools_of_a_format_without_tags_are_told_to_be_loose() -> None:
    found = forced(ToolChoice(), STRICT, printing=NO_TAGS)
    assert (found.constraint, found.ignored) == (None, ("tools.strict",))


def test_an_array_of_json_is_read_as_calls_where_calls_were_demanded() -> None:
    assert forced().expect == "json_array"
    assert forced(printing=Printing(Chosen("harmony", "harmony")), tail="").expect == "native"


# ── Thoughts ─────────────────────────────────────────────────────────────────


def test_an_open_thought_ends_before_the_calls() -> None:
    thought, calls = form(forced(tail=INSIDE))["elements"]
    assert thought == {
        "type": "tag",
        "begin": "",
        "content": {"type": "any_text"},
        "end": "</think>",
    }
    assert calls["tags"] == CALLS


def test_a_thought_that_may_come_is_allowed_once() -> None:
    thought, calls = form(forced(tail=""))["elements"]
    assert (thought["at_least_one"], thought["stop_after_first"]) == (False, True)
    assert {each["begin"] for each in thought["tags"]} == {"<think>"}
    assert calls["at_least_one"] is True


def test_an_engine_that_waits_is_sent_the_calls_alone() -> None:
    found = forced(tail=INSIDE, grammars=GATED)
    assert form(found)["type"] == "triggered_tags"
    assert found.constraint is not None
    assert found.constraint.begins == "engine"
    # Where no thought is open it would wait for the end of one that may never come.
    undecided = forced(tail="", grammars=GATED)
    assert form(undecided)["type"] == "sequence"
    assert undecided.constraint is not None
    assert undecided.constraint.begins == "first_token"


def test_an_engine_that_can_wait_is_asked_to_where_tags_cannot_say_it() -> None:
    found = forced(tail=INSIDE, grammars=OLD)
    assert found.constraint is not None
    assert (found.constraint.kind, found.constraint.begins) == ("json_schema", "after_thought")
    assert found.tail == ""


def test_where_nobody_can_wait_the_thought_is_closed() -> None:
    dumb = Grammars(frozenset({"json_schema"}))
    found = forced(tail=INSIDE, grammars=dumb)
    assert found.tail == "</think>"
    answer = forced(ToolChoice("none"), asked=FORM, tail=INSIDE, grammars=dumb)
    assert (answer.constraint, answer.tail) == (FORM, "</think>")


def test_a_form_is_kept_behind_a_thought() -> None:
    found = form(forced(ToolChoice("none"), asked=FORM, tail=INSIDE))
    assert found["elements"][1] == {"type": "json_schema", "json_schema": SCHEMA}
    assert forced(ToolChoice("none"), asked=FORM, tail=CLOSED).constraint is FORM
    gated = forced(ToolChoice("none"), asked=FORM, tail=INSIDE, grammars=GATED)
    assert gated.constraint == FORM


# ── Forms ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "value", "part"),
    [
        ("json_object", "", {"type": "json_schema", "json_schema": {"type": "object"}}),
        ("regex", "a+", {"type": "regex", "pattern": "a+"}),
        ("ebnf", 'root ::= "a"', {"type": "grammar", "grammar": 'root ::= "a"'}),
        ("choice", '["a"]', {"type": "const_string", "value": "a"}),
        (
            "choice",
            '["a","b"]',
            {
                "type": "or",
                "elements": [
                    {"type": "const_string", "value": "a"},
                    {"type": "const_string", "value": "b"},
                ],
            },
        ),
    ],
)
def test_every_form_of_an_answer_fits_behind_a_thought(kind: Any, value: str, part: Any) -> None:
    asked = Constraint(kind, value, "response_format")
    assert form(forced(ToolChoice("none"), asked=asked, tail=INSIDE))["elements"][1] == part


def test_a_client_s_own_tags_say_everything() -> None:
    tag = '{"type":"structural_tag","format":{"type":"any_text"}}'
    asked = Constraint("structural_tag", tag, "structural_tag")
    assert forced(ToolChoice(), STRICT, asked=asked, tail=INSIDE).constraint is asked


def test_tools_and_a_form_are_one_grammar() -> None:
    answer, calls = form(forced(ToolChoice(), asked=FORM))["elements"]
    assert answer == {"type": "json_schema", "json_schema": SCHEMA}
    assert calls == {
        "type": "tags_with_separator",
        "tags": LOOSE,
        "separator": "\n",
        "at_least_one": True,
        "stop_after_first": False,
    }


def test_a_demanded_call_has_no_answer_to_hold_to_a_form() -> None:
    assert forced(REQUIRED, asked=FORM) == forced(REQUIRED)


def test_tools_and_a_form_that_no_grammar_can_say_both_are_refused() -> None:
    with pytest.raises(SmgError) as caught:
        forced(ToolChoice(), asked=FORM, printing=NO_TAGS)
    assert (caught.value.where, caught.value.code) == ("response_format", "unsupported_parameter")
    assert "response_format and tools" in caught.value.message
    # Nothing to choose: calls are off, or the model has no way to call.
    assert forced(ToolChoice("none"), asked=FORM, printing=NO_TAGS).constraint is FORM
    assert forced(ToolChoice(), asked=FORM, printing=Printing(Chosen())).constraint is FORM


# ── Families with frames ─────────────────────────────────────────────────────


def test_harmony_may_think_and_then_calls() -> None:
    harmony = Printing(Chosen("harmony", "harmony"))
    thought, calls = form(forced(printing=harmony, tail="<|start|>assistant"))["elements"]
    assert [each["begin"] for each in thought["tags"]] == ["<|channel|>analysis<|message|>"]
    assert calls["triggers"] == [
        "<|channel|>commentary to=functions.",
        "<|start|>assistant<|channel|>commentary to=functions.",
    ]
    assert len(calls["tags"]) == 4


def test_a_form_on_harmony_stands_in_the_final_channel() -> None:
    harmony = Printing(Chosen("harmony", "harmony"))
    found = forced(ToolChoice("none"), asked=FORM, printing=harmony, tail="<|start|>assistant")
    answer = form(found)["elements"][1]
    assert answer["begin"] == "<|channel|>final <|constrain|>json<|message|>"
    assert answer["content"]["json_schema"] == SCHEMA


@pytest.mark.parametrize("name", [*known_tools(), *known_joint()])
def test_every_tag_of_every_format_is_one_that_engines_take(name: str) -> None:
    joint = name in known_joint()
    tags = (known_joint() if joint else known_tools()).get(name).tags
    printing = Printing(Chosen(name if joint else "think", name, form=tags[0].form if tags else ""))
    for choice in (REQUIRED, NAMED, ONE, ToolChoice()):
        for tail in ("", INSIDE, CLOSED):
            found = forced(choice, STRICT, ROOMS, printing=printing, tail=tail)
            assert (found.constraint is None) is (not tags and choice.mode == "auto")
            if tags:
                assert all(tag.begin.startswith(tag.triggers) for tag in tags)
                assert "INDEX" not in said(found).__repr__()
                assert "NAME" not in said(found).__repr__()


def test_a_tag_of_another_variant_of_a_format_is_not_used() -> None:
    old = forced(printing=Printing(Chosen("plain", "mistral")))
    assert old.constraint is not None
    assert old.constraint.kind == "json_schema"
    assert form(forced(printing=Printing(Chosen("plain", "mistral", form="v11"))))["triggers"] == [
        "[TOOL_CALLS]"
    ]


# ── Engines that can do less ─────────────────────────────────────────────────


def test_the_older_form_holds_strict_tools_and_demands_nothing() -> None:
    found = said(forced(ToolChoice(), STRICT, ROOMS, grammars=OLD))
    assert found == {
        "type": "structural_tag",
        "structures": [
            {"begin": each["begin"], "schema": each["content"]["json_schema"], "end": each["end"]}
            for each in (CALLS[0], LOOSE[1])
        ],
        "triggers": ["<tool_call>"],
    }
    demanded = forced(grammars=OLD)
    assert demanded.constraint is not None
    assert (demanded.constraint.kind, demanded.expect) == ("json_schema", "json_array")
    styled = forced(
        ToolChoice(), STRICT, grammars=OLD, printing=Printing(Chosen("think", "qwen_xml"))
    )
    assert (styled.constraint, styled.ignored) == (None, ("tools.strict",))


@pytest.mark.parametrize("choice", [REQUIRED, NAMED, ONE])
def test_an_engine_without_grammars_does_what_it_can_and_the_client_is_told(
    choice: ToolChoice,
) -> None:
    found = forced(choice, grammars=UNABLE)
    assert found == Forced(expect="json_array", ignored=("tool_choice",), unheld=("call",))


def test_a_form_without_grammars_is_told_or_refused_by_how_strict_it_is() -> None:
    loose = Constraint("json_schema", "{}", "response_format", strict=False)
    found = forced(ToolChoice(), asked=loose, grammars=UNABLE)
    assert found == Forced(ignored=("response_format",), unheld=("form",))
    with pytest.raises(SmgError) as caught:
        forced(ToolChoice(), asked=FORM, grammars=UNABLE)
    assert caught.value.where == "response_format"


def test_which_schemas_an_engine_may_be_sent() -> None:
    def held(
        choice: ToolChoice, asked: Constraint | None = None, name: str = "hermes"
    ) -> list[str]:
        prompt = ChatPrompt((), (STRICT, ROOMS), choice=choice)
        return [each.name for each in held_tools(prompt, asked, Printing(Chosen("think", name)))]

    both = ["find_museum", "list_rooms"]
    assert held(REQUIRED) == both
    assert held(ToolChoice()) == both[:1]
    assert held(ToolChoice(), name="qwen_xml") == both
    assert held(ToolChoice("none"), FORM) == []
    assert held_tools(ChatPrompt((), (FIND,)), None, HERMES) == ()
