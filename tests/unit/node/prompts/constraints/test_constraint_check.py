"""Constraints that an engine may and may not be sent."""

import json
import sys
import time
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Constraint, ConstraintKind
from smg_node.prompts.constraints.constraint_check import check_constraint
from smg_node.prompts.constraints.regex_size import PatternError, pattern_states


def check(kind: ConstraintKind, value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value)
    check_constraint(Constraint(kind, text, "here"))


def refused(kind: ConstraintKind, value: Any) -> SmgError:
    with pytest.raises(SmgError) as raised:
        check(kind, value)
    assert raised.value.kind is ErrorKind.INVALID_REQUEST
    return raised.value


GOOD_SCHEMAS: list[Any] = [
    {},
    {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
    {"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer", "minimum": 0}}},
    {"$defs": {"a/b": {"type": "string"}}, "items": {"$ref": "#/$defs/a~1b"}},
    {"properties": {"child": {"$ref": "#"}, "n": {"type": "number"}}},
    {"$defs": {"n": {"$anchor": "node", "type": "object"}}, "items": {"$ref": "#node"}},
    {"anyOf": [{"const": None}, {"enum": [1, "a", {}]}], "additionalProperties": False},
    {"type": "array", "prefixItems": [True, {}], "items": False, "maxItems": 2147483647},
    {"type": "string", "pattern": "^(?=a)b", "format": "date-time", "maxLength": 10},
    {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "items": [{}]},
]

BAD_SCHEMAS: list[tuple[Any, str]] = [
    (5, "here"),
    ([], "here"),
    (True, "here"),
    ({"type": "thing"}, "here.type"),
    ({"type": []}, "here.type"),
    ({"properties": 5}, "here.properties"),
    ({"properties": {"a": 5}}, "here.properties.a"),
    ({"properties": {"a": {"items": [{}, "x"]}}}, "here.properties.a.items[1]"),
    ({"anyOf": []}, "here.anyOf"),
    ({"anyOf": [{"type": 1}]}, "here.anyOf[0].type"),
    ({"enum": []}, "here.enum"),
    ({"required": "a"}, "here.required"),
    ({"minItems": -1}, "here.minItems"),
    ({"minimum": "1"}, "here.minimum"),
    ({"pattern": 1}, "here.pattern"),
    ({"$ref": "http://example.com/x"}, "here.$ref"),
    ({"$ref": "other.json"}, "here.$ref"),
    ({"$ref": 5}, "here.$ref"),
    ({"items": {"$dynamicRef": "file:///etc/passwd"}}, "here.items.$dynamicRef"),
    ({"$ref": "#/$defs/nothing"}, "here.$ref"),
    ({"$ref": "#nothing"}, "here.$ref"),
    ({"$ref": "#"}, "here.$ref"),
    (
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        "here",
    ),
    ({"$schema": "http://example.com/mine"}, "here.$schema"),
]


@pytest.mark.parametrize("schema", GOOD_SCHEMAS)
def test_a_usable_schema_passes(schema: Any) -> None:
    check("json_schema", schema)


@pytest.mark.parametrize(("schema", "where"), BAD_SCHEMAS)
def test_an_unusable_schema_is_refused_at_its_place(schema: Any, where: str) -> None:
    error = refused("json_schema", schema)
    assert error.code == "invalid_json_schema"
    assert error.where is not None
    assert error.where.startswith(where)


@pytest.mark.parametrize(("schema", "where"), BAD_SCHEMAS)
def test_the_same_is_refused_without_the_schema_library(
    schema: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert (refused("json_schema", schema).where or "").startswith(where)


@pytest.mark.parametrize("schema", GOOD_SCHEMAS)
def test_the_same_passes_without_the_schema_library(
    schema: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    check("json_schema", schema)


def test_the_schema_library_finds_what_our_own_check_does_not() -> None:
    assert refused("json_schema", {"uniqueItems": "yes"}).where == "here.uniqueItems"


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


def test_a_schema_is_bounded_in_depth_and_size() -> None:
    check("json_schema", _nested(64))
    assert "levels deep" in refused("json_schema", _nested(65)).message
    refused("json_schema", json.dumps(_nested(300)))
    refused("json_schema", '{"items":' * 5000 + "{}" + "}" * 5000)
    refused("json_schema", '{"enum":' + "[" * 30000)
    assert "65536" in refused("json_schema", {"description": "x" * 70_000}).message


@pytest.mark.parametrize("value", ["", "{", "nul", "\x00", "\ud800"])
def test_what_is_no_json_is_no_schema(value: str) -> None:
    assert refused("json_schema", value).code == "invalid_json_schema"


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        ("a", 1),
        ("abc", 3),
        ("a|bc", 3),
        ("(?:ab){3}c", 7),
        ("[a-z]{2,5}", 5),
        ("a{4}", 4),
        ("a{2,}", 2),
        ("a*b+c?", 3),
        ("a+?", 1),
        (r"\d{4}-\d{2}", 7),
        (r"[]a]", 1),
        (r"[^]a]", 1),
        (r"[\]]", 1),
        (r"a{,3}", 3),
        (r"\{x}", 3),
        (r"{}", 2),
        (r"(?i)abc", 3),
        (r"(?P<year>\d+)(?<month>\d+)", 2),
        (r"\p{L}\x41\u00e9\x{1F600}", 4),
        ("^$", 2),
        ("(|a)", 1),
        ("((a{9}){9}){9}", 729),
    ],
)
def test_the_size_of_a_pattern_is_counted(pattern: str, states: int) -> None:
    assert pattern_states(pattern) == states
    check("regex", pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "(a", "a)", "[a", "[", "*", "a**", "|*", "(*a)", "a{3,2}", "\\", "a++", "(?", "(?z)",
        "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", r"(a)\1", r"(?P<n>a)(?P=n)", r"\k<n>", "(?#x)",
        "(?(1)a|b)", "a{99999}", "(a{300}){300}", "((((a{99}){99}){99}){99})", "a{99999999999999999999}",
        "a" * 65_537, "(" * 101 + ")" * 101, "(" * 30_000, "",
    ],
)  # fmt: skip
def test_a_pattern_that_no_engine_should_see_is_refused(pattern: str) -> None:
    assert refused("regex", pattern).where == "here"


def test_a_pattern_error_says_what_is_wrong() -> None:
    with pytest.raises(PatternError, match="looking ahead"):
        pattern_states("a(?=b)")


@pytest.mark.parametrize("grammar", ["root ::= 'a'", "start: WORD\nWORD: /[a-z]+/"])
def test_a_grammar_of_either_notation_passes(grammar: str) -> None:
    check("ebnf", grammar)


@pytest.mark.parametrize("grammar", ["", "hello", "root ::= (", "root ::= x", "root ::= ((" * 65])
def test_a_grammar_that_cannot_be_used_is_refused(grammar: str) -> None:
    error = refused("ebnf", grammar)
    assert (error.where, error.code) == ("here", "invalid_value")
    assert error.message.startswith("the grammar cannot be used: ")


PATTERNS_OF_SCHEMAS = [
    "", "^a+$", "^(?=a)b", "(?<!x)y", r"(a)\1", r"(?<n>a)\k<n>", r"^\p{L}[\w-]*$", "a{,3}", "[]a]", "a-z", r"\x4", "(?<a-b>c)", "a++", "(ab){2}{3}",
    r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", r"^\d{4}-\d{2}-\d{2}$", r"[\]\-z]", "[[:alpha:]]",
]  # fmt: skip
MALFORMED = [
    "(",
    ")",
    "a)",
    "[a",
    "*",
    "a|*",
    "(?z)",
    "a{3,2}",
    "\\",
    "[z-a]",
    "[a-c9-0]",
    "a" * 65_537,
]


@pytest.mark.parametrize("pattern", PATTERNS_OF_SCHEMAS)
def test_a_schema_may_have_patterns_of_its_own_notation(pattern: str) -> None:
    check("json_schema", {"pattern": pattern, "patternProperties": {pattern: {}}})


@pytest.mark.parametrize("pattern", MALFORMED[:-1])
@pytest.mark.parametrize("library", [True, False])
def test_a_malformed_pattern_is_refused_wherever_a_schema_has_it(
    pattern: str, library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not library:
        monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    named = f"here.patternProperties[{pattern!r}]"
    for schema, where in (
        ({"pattern": pattern}, "here.pattern"),
        ({"properties": {"a b": {"pattern": pattern}}}, "here.properties['a b'].pattern"),
        ({"items": [{"anyOf": [{"pattern": pattern}]}]}, "here.items[0].anyOf[0].pattern"),
        (
            {"$defs": {"x": {"propertyNames": {"pattern": pattern}}}},
            "here.$defs.x.propertyNames.pattern",
        ),
        ({"patternProperties": {pattern: {}}}, named),
    ):
        error = refused("json_schema", schema)
        assert (error.where, error.code) == (where, "invalid_json_schema")
        assert "the regular expression cannot be used" in error.message


def test_a_word_that_looks_like_a_pattern_is_none() -> None:
    check("json_schema", {"properties": {"pattern": {"const": {"pattern": "("}}}, "enum": ["("]})


@pytest.mark.parametrize("pattern", MALFORMED)
def test_a_malformed_pattern_is_refused_by_itself(pattern: str) -> None:
    assert refused("regex", pattern).where == "here"


def test_many_references_to_one_place_are_followed_once() -> None:
    chain = {f"n{at}": {"$ref": f"#/$defs/n{at + 1}"} for at in range(4_000)}
    began = time.process_time()
    check_constraint(
        Constraint(
            "json_schema",
            json.dumps(
                {
                    "$defs": {**chain, "n4000": {"$anchor": "end"}},
                    "anyOf": [{"$ref": "#end"}] * 4_000,
                }
            ),
            "here",
        ),
        max_bytes=1 << 20,
    )
    # Each anew would be eight million steps for the chain and sixty for the anchor.
    assert time.process_time() - began < 2


def test_choices_are_distinct_strings() -> None:
    check("choice", ["a", "b"])
    for value, where in (
        ([], "here"),
        ("{}", "here"),
        ("[", "here"),
        (["a", ""], "here[1]"),
        (["a", 5], "here[1]"),
        (["a", "b", "a"], "here[2]"),
    ):
        assert refused("choice", value).where == where


GOOD_TAGS: list[Any] = [
    {
        "type": "structural_tag",
        "format": {"type": "json_schema", "json_schema": {"type": "object"}},
    },
    {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": ["<t>"],
            "tags": [
                {
                    "begin": "<t>",
                    "content": {"type": "json_schema", "json_schema": {}},
                    "end": "</t>",
                }
            ],
        },
    },
    {
        "format": {
            "type": "sequence",
            "elements": [{"type": "any_text"}, {"type": "regex", "pattern": "a+"}],
        }
    },
    {
        "structures": [{"begin": "<f=x>", "schema": {"type": "object"}, "end": "</f>"}],
        "triggers": ["<f="],
    },
    {
        "type": "structural_tag",
        "structures": [{"begin": "<f>", "schema": True, "end": ""}],
        "triggers": ["<f"],
    },
]

BAD_TAGS: list[tuple[Any, str]] = [
    ([], "here"),
    ({}, "here"),
    ({"type": "other", "format": {}}, "here.type"),
    ({"format": {}}, "here.format.type"),
    ({"format": []}, "here"),
    ({"format": {"type": "sequence"}}, "here.format.elements"),
    ({"format": {"type": "sequence", "elements": [5]}}, "here.format.elements[0]"),
    ({"format": {"type": "triggered_tags", "tags": []}}, "here.format.triggers"),
    ({"format": {"type": "tag", "begin": "x"}}, "here.format"),
    ({"format": {"type": "json_schema"}}, "here.format.json_schema"),
    (
        {"format": {"type": "json_schema", "json_schema": {"type": "x"}}},
        "here.format.json_schema.type",
    ),
    ({"format": {"type": "regex", "pattern": "("}}, "here.format.pattern"),
    ({"format": {"type": "grammar", "grammar": ""}}, "here.format.grammar"),
    ({"structures": [], "triggers": ["a"]}, "here.structures"),
    ({"structures": [{}]}, "here.triggers"),
    ({"structures": [5], "triggers": ["a"]}, "here.structures[0]"),
    (
        {"structures": [{"begin": "b", "end": "", "schema": {}}], "triggers": ["a"]},
        "here.structures[0].begin",
    ),
    ({"structures": [{"begin": "a", "schema": {}}], "triggers": ["a"]}, "here.structures[0].end"),
    (
        {"structures": [{"begin": "a", "end": "", "schema": {"type": 1}}], "triggers": ["a"]},
        "here.structures[0].schema.type",
    ),
]


@pytest.mark.parametrize("tag", GOOD_TAGS)
def test_a_structural_tag_of_either_form_passes(tag: Any) -> None:
    check("structural_tag", tag)


@pytest.mark.parametrize(("tag", "where"), BAD_TAGS)
def test_a_bad_structural_tag_is_refused_at_its_place(tag: Any, where: str) -> None:
    assert refused("structural_tag", tag).where == where


def test_a_deep_structural_tag_is_refused() -> None:
    tag: dict[str, Any] = {"type": "any_text"}
    for _ in range(70):
        tag = {"type": "sequence", "elements": [tag]}
    assert "deep" in refused("structural_tag", {"format": tag}).message


def test_any_json_needs_no_check() -> None:
    check_constraint(Constraint("json_object", "", "here"))


@pytest.mark.parametrize("kind", ["regex", "ebnf", "choice", "structural_tag", "json_schema"])
def test_a_constraint_beyond_the_limit_is_refused(kind: ConstraintKind) -> None:
    with pytest.raises(SmgError, match="at most 100 are taken"):
        check_constraint(Constraint(kind, "x" * 101, "here"), max_bytes=100)
