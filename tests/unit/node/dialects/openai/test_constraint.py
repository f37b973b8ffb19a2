"""Everything that holds the output to a grammar, in all its spellings."""

import json
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Constraint
from smg_node.core.json_cursor import Cursor, Problems
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.openai.json_schema import check_schema
from smg_node.dialects.options import ReaderOptions

SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
SCHEMA_TEXT = json.dumps(SCHEMA, separators=(",", ":"))
NAMED = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
TAG = {"type": "structural_tag", "structures": [], "triggers": ["<f"]}


def constraint(options: ReaderOptions | None = None, /, **parameters: Any) -> Constraint | None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **parameters}
    return ChatDialect(options or ReaderOptions()).read(body).request.sampling.constraint


def refusal(options: ReaderOptions | None = None, /, **parameters: Any) -> SmgError:
    with pytest.raises(SmgError) as caught:
        constraint(options, **parameters)
    return caught.value


@pytest.mark.parametrize(
    ("parameters", "kind", "value", "where"),
    [
        ({"response_format": {"type": "json_object"}}, "json_object", "", "response_format"),
        (
            {"response_format": {"type": "json_object", "schema": {}}},
            "json_object",
            "",
            "response_format",
        ),
        (
            {"response_format": NAMED},
            "json_schema",
            SCHEMA_TEXT,
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": TAG},
            "structural_tag",
            json.dumps(TAG, separators=(",", ":")),
            "response_format",
        ),
        ({"json_schema": SCHEMA}, "json_schema", SCHEMA_TEXT, "json_schema"),
        ({"json_schema": json.dumps(SCHEMA)}, "json_schema", SCHEMA_TEXT, "json_schema"),
        ({"guided_json": SCHEMA}, "json_schema", SCHEMA_TEXT, "guided_json"),
        (
            {"structured_outputs": {"json": SCHEMA}},
            "json_schema",
            SCHEMA_TEXT,
            "structured_outputs.json",
        ),
        ({"regex": "a+"}, "regex", "a+", "regex"),
        ({"guided_regex": "a+"}, "regex", "a+", "guided_regex"),
        ({"structured_outputs": {"regex": "a+"}}, "regex", "a+", "structured_outputs.regex"),
        ({"ebnf": "root ::= x"}, "ebnf", "root ::= x", "ebnf"),
        ({"grammar": "root ::= x"}, "ebnf", "root ::= x", "grammar"),
        ({"guided_grammar": "g"}, "ebnf", "g", "guided_grammar"),
        ({"structured_outputs": {"grammar": "g"}}, "ebnf", "g", "structured_outputs.grammar"),
        ({"choice": ["a", "é"]}, "choice", '["a","é"]', "choice"),
        ({"guided_choice": ["a"]}, "choice", '["a"]', "guided_choice"),
        ({"structured_outputs": {"choice": ["a"]}}, "choice", '["a"]', "structured_outputs.choice"),
        ({"guided_json_object": True}, "json_object", "", "guided_json_object"),
        (
            {"structured_outputs": {"json_object": True}},
            "json_object",
            "",
            "structured_outputs.json_object",
        ),
        ({"structural_tag": {"a": 1}}, "structural_tag", '{"a":1}', "structural_tag"),
        ({"structural_tag": '{"a": 1}'}, "structural_tag", '{"a":1}', "structural_tag"),
    ],
)
def test_a_spelling_becomes_a_constraint(
    parameters: dict[str, Any], kind: Any, value: str, where: str
) -> None:
    strict = (kind, where) != ("json_object", "response_format")
    assert constraint(**parameters) == Constraint(kind, value, where, strict=strict)


@pytest.mark.parametrize("kind", ["json_object", "json_schema"])
@pytest.mark.parametrize("strict", [None, False, True])
@pytest.mark.parametrize("schema", [SCHEMA, SCHEMA_TEXT])
def test_a_schema_beside_the_type_is_taken_as_other_servers_take_it(
    kind: str, strict: bool | None, schema: Any
) -> None:
    found = constraint(response_format={"type": kind, "schema": schema, "strict": strict})
    where = "response_format.schema"
    assert found == Constraint("json_schema", SCHEMA_TEXT, where, strict=strict is True)


@pytest.mark.parametrize(
    ("schema", "where", "code"),
    [
        (5, "response_format.schema", "invalid_type"),
        ("{", "response_format.schema", "invalid_json_schema"),
        ({"type": "thing"}, "response_format.schema.type", "invalid_json_schema"),
    ],
)
def test_a_wrong_schema_beside_the_type_is_refused(schema: Any, where: str, code: str) -> None:
    error = refusal(response_format={"type": "json_object", "schema": schema})
    assert (error.where, error.code) == (where, code)


@pytest.mark.parametrize(
    ("wanted", "ignored"),
    [
        ({"type": "text", "schema": {}}, ("response_format.schema",)),
        ({"type": "json_object", "foo": 1, "bar": None}, ("response_format.foo",)),
        (
            {
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": SCHEMA, "description": "x", "foo": 1},
            },
            ("response_format.json_schema.foo", "response_format.json_schema.description"),
        ),
    ],
)
def test_keys_of_a_format_that_nothing_reads_are_named(
    wanted: Any, ignored: tuple[str, ...]
) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "response_format": wanted,
    }
    assert ChatDialect(ReaderOptions()).read(body).request.ignored == ignored
    with pytest.raises(SmgError, match="there is no parameter of this name"):
        ChatDialect(ReaderOptions(unknown_parameters="reject")).read(body)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"response_format": {"type": "text"}},
        {"guided_json_object": False},
        {"structured_outputs": {}},
        {"structured_outputs": {"json": None, "json_object": False}},
    ],
)
def test_some_spellings_ask_for_nothing(parameters: dict[str, Any]) -> None:
    assert constraint(**parameters) is None


def test_text_as_format_goes_with_another_constraint() -> None:
    found = constraint(response_format={"type": "text"}, regex="a")
    assert found == Constraint("regex", "a", "regex")


@pytest.mark.parametrize(
    ("parameters", "where", "code"),
    [
        ({"response_format": {}}, "response_format.type", "missing_required_parameter"),
        (
            {"response_format": {"type": "json_schema"}},
            "response_format.json_schema",
            "missing_required_parameter",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            "response_format.json_schema.name",
            "missing_required_parameter",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
            "missing_required_parameter",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "obj"}},
                }
            },
            "response_format.json_schema.schema.type",
            "invalid_json_schema",
        ),
        ({"json_schema": "{"}, "json_schema", "invalid_json_schema"),
        ({"json_schema": "[]"}, "json_schema", "invalid_json_schema"),
        ({"json_schema": 1}, "json_schema", "invalid_type"),
        ({"structural_tag": "x"}, "structural_tag", "invalid_value"),
        ({"structured_outputs": {"regex": 1}}, "structured_outputs.regex", "invalid_type"),
        ({"regex": "x" * 65_537}, "regex", "invalid_value"),
        ({"regex": "é" * 32_769}, "regex", "invalid_value"),
        ({"choice": ["x" * 65_536]}, "choice", "invalid_value"),
    ],
)
def test_a_mistake_in_a_constraint_has_a_path(
    parameters: dict[str, Any], where: str, code: str
) -> None:
    error = refusal(**parameters)
    assert (error.where, error.code) == (where, code)


def test_grammars_and_schemas_may_be_as_large_as_configured() -> None:
    options = ReaderOptions(grammar_max_bytes=4, schema_max_bytes=len(SCHEMA_TEXT))
    assert constraint(options, regex="xxxx") is not None
    assert refusal(options, regex="xxxxx").where == "regex"
    assert constraint(options, json_schema=SCHEMA) is not None
    assert refusal(options, json_schema={**SCHEMA, "title": ""}).where == "json_schema"


# ── Schemas ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["string", "null"], "minLength": 0, "maxLength": 3.0, "pattern": "("},
        {"$ref": "#/$defs/a", "$defs": {"a": {"enum": [None, 1]}}},
        {"items": [{}, True], "prefixItems": [{}], "additionalProperties": False},
        {"properties": {"properties": {"type": "object", "required": []}}},
        {
            "x-anything": object,
            "const": {"type": 1},
            "default": {"anyOf": 1},
            "examples": [{"type": 1}],
        },
        {"minimum": -1, "maximum": 1.5, "multipleOf": 0.1},
    ],
)
def test_a_good_schema_passes(schema: dict[str, Any]) -> None:
    problems = Problems()
    check_schema(Cursor(schema, problems))
    problems.check()


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "text"}, "type"),
        ({"type": []}, "type"),
        ({"type": ["string", 1]}, "type"),
        ({"properties": []}, "properties"),
        ({"properties": {"a": 1}}, "properties.a"),
        ({"properties": {"a b": {"type": 1}}}, "properties['a b'].type"),
        ({"items": 1}, "items"),
        ({"items": {"items": {"type": "x"}}}, "items.items.type"),
        ({"anyOf": []}, "anyOf"),
        ({"anyOf": [{}, 1]}, "anyOf[1]"),
        ({"oneOf": [{}, {"enum": []}]}, "oneOf[1].enum"),
        ({"required": "a"}, "required"),
        ({"required": [1]}, "required"),
        ({"$ref": "http://example.org/schema"}, "$ref"),
        ({"$ref": "other.json"}, "$ref"),
        ({"minLength": -1}, "minLength"),
        ({"minItems": 1.5}, "minItems"),
        ({"minimum": "1"}, "minimum"),
        ({"multipleOf": 0}, "multipleOf"),
        ({"minimum": True}, "minimum"),
        ({"pattern": 1}, "pattern"),
        ({"not": None}, "not"),
        ({"$defs": {"a": {"then": []}}}, "$defs.a.then"),
    ],
)
def test_what_cannot_be_a_schema_is_found(schema: dict[str, Any], where: str) -> None:
    problems = Problems()
    check_schema(Cursor(schema, problems))
    with pytest.raises(SmgError) as caught:
        problems.check()
    assert caught.value.code == "invalid_json_schema"
    assert caught.value.where == where.replace("$ref", "['$ref']").replace("$defs", "['$defs']")


@pytest.mark.parametrize("said", [False, None])
def test_a_form_that_is_not_strict_may_be_kept_as_well_as_possible(said: Any) -> None:
    named = {"name": "x", "schema": SCHEMA, "strict": said}
    found = constraint(response_format={"type": "json_schema", "json_schema": named})
    assert found is not None
    assert not found.strict
