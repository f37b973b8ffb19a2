"""Values printed without a type: what each becomes by its schema, and what never fails."""

import json
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.parsers.notations.schema_types import (
    JSON,
    STRING,
    UNKNOWN,
    Types,
    as_json,
    items_of,
    not_string,
    python_literal,
    schema_of,
    types_in,
    types_of,
)


def _types(*names: Any) -> Types:
    return frozenset(names)


@pytest.mark.parametrize(
    ("text", "types", "said"),
    [
        # null: only where the schema allows it.
        ("null", _types("null", "string"), "null"),
        ("None", _types("null", "integer"), "null"),
        (" null\n", _types("null"), "null"),
        ("null", STRING, '"null"'),
        ("None", STRING, '"None"'),
        ("null", _types("integer"), '"null"'),
        ("Null", _types("null", "string"), '"Null"'),
        # integers: any size, digits as they are.
        ("42", _types("integer"), "42"),
        (" 42\n", _types("integer"), "42"),
        ("-0", _types("integer"), "-0"),
        ("9007199254740993", _types("integer"), "9007199254740993"),
        ("9" * 5000, _types("integer"), "9" * 5000),
        ("1.0", _types("integer"), "1"),
        ("-3.00", _types("integer"), "-3"),
        ("1.0", _types("integer", "number"), "1.0"),
        ("1.5", _types("integer"), '"1.5"'),
        ("007", _types("integer"), '"007"'),
        ("+4", _types("integer"), '"+4"'),
        ("٣", _types("integer"), '"٣"'),
        ("1_000", _types("integer"), '"1_000"'),
        ("three", _types("integer"), '"three"'),
        ("", _types("integer"), '""'),
        # numbers: the grammar of JSON, as printed.
        ("108.2", _types("number"), "108.2"),
        ("1E5", _types("number"), "1E5"),
        ("-1.50e-3", _types("number"), "-1.50e-3"),
        ("2", _types("number"), "2"),
        ("1.", _types("number"), '"1."'),
        (".5", _types("number"), '".5"'),
        ("NaN", _types("number"), '"NaN"'),
        ("Infinity", _types("number"), '"Infinity"'),
        ("-inf", _types("number"), '"-inf"'),
        ("1e999", _types("number"), '"1e999"'),
        ("0x1F", _types("number"), '"0x1F"'),
        ("01.5", _types("number"), '"01.5"'),
        # booleans: no numbers.
        ("true", _types("boolean"), "true"),
        ("True", _types("boolean"), "true"),
        ("False", _types("boolean"), "false"),
        ("TRUE", _types("boolean"), '"TRUE"'),
        ("1", _types("boolean"), '"1"'),
        ("0", _types("boolean", "integer"), "0"),
        # objects and arrays: JSON as it is, else what Python reads.
        ('{"a": 1e2, "b":[ ]}', _types("object"), '{"a": 1e2, "b":[ ]}'),
        (' [1,\n 2] ', _types("array"), "[1,\n 2]"),
        ("[9007199254740993.0]", _types("array"), "[9007199254740993.0]"),
        ("{'a': None, 'b': (True, 'ü')}", _types("object"), '{"a":null,"b":[true,"ü"]}'),
        ("['a', 'it\\'s']", _types("array"), '["a","it\'s"]'),
        (r"['\d+', '\n']", _types("array"), r'["\\d+","\n"]'),
        ("{1: 'a'}", _types("object"), '{"1":"a"}'),
        ("{1, 2}", _types("object"), '"{1, 2}"'),
        ("[1, 2", _types("array"), '"[1, 2"'),
        ("[1e999]", _types("array"), '"[1e999]"'),
        ("[NaN]", _types("array"), '"[NaN]"'),
        ("[f(1)]", _types("array"), '"[f(1)]"'),
        ("{}", _types("array"), '"{}"'),
        ("[" * 300, _types("array"), json.dumps("[" * 300)),
        ("[" * 5000 + "]" * 5000, _types("array"), json.dumps("[" * 5000 + "]" * 5000)),
        # strings: everything, as it is.
        ("001", STRING, '"001"'),
        ("true", STRING, '"true"'),
        ("1e5", STRING, '"1e5"'),
        ('"4"', STRING, '"\\"4\\""'),
        (" a \n", STRING, '" a \\n"'),
        ("&lt;b&gt; \\u00fc ü", STRING, '"&lt;b&gt; \\\\u00fc ü"'),
        ("\x00\x1f\x7f\u2028", STRING, '"\\u0000\\u001f\x7f\u2028"'),
        ('{"a": 1}', STRING, '"{\\"a\\": 1}"'),
        # Several types: the narrowest that fits.
        ("4", _types("string", "integer"), "4"),
        ("04", _types("string", "integer"), '"04"'),
        (" x ", _types("string", "integer"), '" x "'),
        ("true", _types("string", "boolean", "null"), "true"),
        ('{"a":1}', _types("string", "object"), '{"a":1}'),
        # Nothing is known: JSON, Python, text.
        ("4", UNKNOWN, "4"),
        ("108.", UNKNOWN, '"108."'),
        ("1.0", UNKNOWN, "1.0"),
        ("True", UNKNOWN, "true"),
        ("None", UNKNOWN, "null"),
        ("{'a': 1}", UNKNOWN, '{"a":1}'),
        ("[link](x)", UNKNOWN, '"[link](x)"'),
        ("NaN", UNKNOWN, '"NaN"'),
        ("", UNKNOWN, '""'),
        (" plain text ", UNKNOWN, '" plain text "'),
        ('"4"', UNKNOWN, '"\\"4\\""'),
        # The model says that it is JSON.
        ('"4"', JSON, '"4"'),
        ("4", not_string(STRING), "4"),
        ("1.0", not_string(_types("integer", "string")), "1"),
        ('"x"', not_string(_types("integer")), '"x"'),
        ("x", not_string(_types("integer")), '"x"'),
        ("True", not_string(UNKNOWN), "true"),
    ],
)  # fmt: skip
def test_a_value_becomes_the_first_of_its_types_that_it_fits(
    text: str, types: Types, said: str
) -> None:
    assert as_json(text, types) == said


@given(
    st.text(alphabet="{}[]\"\\':,0123456789.eE-+truefalsnN \n", max_size=40),
    st.sets(
        st.sampled_from(
            ["null", "integer", "number", "boolean", "object", "array", "string", "json"]
        )
    ),
)
def test_whatever_is_printed_is_json_in_the_end(text: str, names: set[Any]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    json.loads(as_json(text, frozenset(names)), parse_constant=refuse)


ROOT: Any = {
    "type": "object",
    "properties": {
        "plain": {"type": "string"},
        "both": {"type": ["integer", "null"]},
        "one": {"enum": ["a", 1, None]},
        "fixed": {"const": True},
        "typed": {"type": "string", "enum": ["1", "2"]},
        "any": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "either": {"oneOf": [{"type": "number"}, {"$ref": "#/$defs/List"}]},
        "all": {"allOf": [{"$ref": "#/definitions/Name"}, {"description": "x"}]},
        "loop": {"$ref": "#/$defs/Loop"},
        "root": {"$ref": "#"},
        "escaped": {"$ref": "#/$defs/a~1b"},
        "far": {"$ref": "https://example.org/x"},
        "gone": {"$ref": "#/$defs/None"},
        "true": True,
        "said": {"description": "no type"},
        "maybe": {"nullable": True},
        "null": {"type": "string", "nullable": True},
        "odd": {"type": ["integer", {"x": 1}, "widget"]},
        "nested": {"anyOf": [{"anyOf": [{"allOf": [{"type": "boolean"}]}]}]},
    },
    "$defs": {
        "List": {"type": "array", "items": {"type": "integer"}},
        "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "integer"}, {"$ref": "#/$defs/Loop"}]},
        "a/b": {"type": "boolean"},
    },
    "definitions": {"Name": {"type": "string"}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("key", "types"),
    [
        ("plain", STRING),
        ("both", _types("integer", "null")),
        ("one", _types("string", "integer", "null")),
        ("fixed", _types("boolean")),
        ("typed", STRING),
        ("any", _types("string", "null")),
        ("either", _types("number", "array")),
        ("all", STRING),
        ("loop", _types("integer")),
        ("root", _types("object")),
        ("escaped", _types("boolean")),
        ("far", UNKNOWN),
        ("gone", UNKNOWN),
        ("true", UNKNOWN),
        ("said", UNKNOWN),
        ("maybe", UNKNOWN),
        ("null", _types("string", "null")),
        ("odd", _types("integer")),
        ("nested", _types("boolean")),
        ("nobody", UNKNOWN),
    ],
)
def test_a_schema_says_what_types_a_parameter_may_have(key: str, types: Types) -> None:
    assert types_of(ROOT, key) == types


def test_a_parameter_may_be_declared_in_a_branch_and_behind_a_reference() -> None:
    schema = {
        "anyOf": [
            {"properties": {"x": {"type": "integer"}}},
            {"allOf": [{"$ref": "#/$defs/More"}]},
        ],
        "$defs": {"More": {"properties": {"x": {"type": "null"}, "y": {"type": "string"}}}},
    }
    assert types_of(schema, "x") == _types("integer", "null")
    assert types_of(schema, "y") == STRING
    assert schema_of(schema, schema, "y") == {"type": "string"}
    assert schema_of(schema, schema, "z") is None


def test_a_list_says_what_its_elements_are() -> None:
    assert items_of({"$ref": "#/$defs/List"}, ROOT) == {"type": "integer"}
    assert items_of({"type": "string"}, ROOT) is None
    assert types_in(None, ROOT) == UNKNOWN


@pytest.mark.parametrize("schema", [None, True, [], "string", {"properties": []}, {"anyOf": {}}])
def test_a_schema_that_is_none_says_nothing(schema: Any) -> None:
    assert types_of(schema, "x") == UNKNOWN


def test_a_reference_that_branches_into_itself_ends_soon() -> None:
    wide = {"$ref": "#/$defs/W"}
    root: Any = {"properties": {"x": wide}, "$defs": {"W": {"anyOf": [wide] * 64}}}
    assert types_of(root, "x") == UNKNOWN


def test_halves_of_a_pair_become_one_character_and_a_half_alone_the_replacement() -> None:
    assert python_literal(r"['\ud83d\ude00', '\ud83d']") == '["😀","�"]'
    assert python_literal(r"{'\ude00\ud83d': 1}") == '{"��":1}'


def test_python_has_no_opinion_on_what_a_model_writes() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert python_literal("3if x else 4") is None
        assert python_literal(r"['\d']") is not None
    assert told == []
