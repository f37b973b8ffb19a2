"""JSON Schema check: finds structural errors in a schema before an engine compiles it.

Structure only: which keywords hold a schema, a list or map of schemas, a type name, a bound.
Patterns are checked later, with the whole constraint. References must stay inside the
document: neither this node nor an engine may fetch a schema from elsewhere.
"""

from typing import Any, Final

from smg_node.core.json_cursor import Cursor

_CODE: Final = "invalid_json_schema"
TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_LISTS: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS: Final = frozenset(
    {
        "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames",
        "contains", "not", "if", "then", "else",
    }
)  # fmt: skip
_COUNTS: Final = frozenset(
    {
        "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
        "minContains", "maxContains",
    }
)  # fmt: skip
_BOUNDS: Final = frozenset({"minimum", "maximum", "multipleOf"})


def check_schema(schema: Cursor) -> None:
    """Note everything in `schema` that is not valid in a JSON Schema."""
    for key, value in schema.values.items():
        if key in _MAPS:
            _check_map(schema, key)
        elif key in _LISTS:
            _check_list(schema, key, value)
        elif key == "items" and type(value) is list:
            _check_list(schema, key, value, empty_allowed=True)
        elif key in _SCHEMAS or key == "items":
            _check_child(schema, key, value)
        else:
            why = _wrong_keyword(key, value)
            if why:
                schema.problem(key, why, _CODE)


def _check_child(schema: Cursor, key: str, value: Any) -> None:
    if type(value) is dict:
        check_schema(Cursor(value, schema.problems, schema, key))
    elif type(value) is not bool:
        schema.problem(key, "must be a schema: an object or a boolean", _CODE)


def _check_map(schema: Cursor, key: str) -> None:
    value = schema.values[key]
    if type(value) is not dict:
        schema.problem(key, "must be an object of schemas", _CODE)
        return
    inside = Cursor(value, schema.problems, schema, key)
    for name, child in value.items():
        _check_child(inside, name, child)


def _check_list(schema: Cursor, key: str, value: Any, *, empty_allowed: bool = False) -> None:
    if type(value) is not list or not (value or empty_allowed):
        schema.problem(key, "must be a non-empty array of schemas", _CODE)
        return
    for index, child in enumerate(value):
        if type(child) is dict:
            check_schema(Cursor(child, schema.problems, schema, key, index))
        elif type(child) is not bool:
            schema.problem(key, "must be a schema: an object or a boolean", _CODE, index)


def _wrong_keyword(key: str, value: Any) -> str:
    """Return what is wrong with a keyword that holds no schema; empty if nothing."""
    if key == "type":
        return _wrong_type(value)
    if key == "required":
        good = type(value) is list and all(type(name) is str for name in value)
        return "" if good else "must be an array of strings"
    if key == "enum":
        return "" if type(value) is list and value else "must be a non-empty array"
    if key == "$ref":
        good = type(value) is str and value.startswith("#")
        return "" if good else "must be a reference into this schema, starting with '#'"
    if key in ("pattern", "format", "title", "description"):
        return "" if type(value) is str else "must be a string"
    if key in _COUNTS:
        return "" if _is_number(value) and value >= 0 and value % 1 == 0 else "must be a count"
    if key in _BOUNDS:
        good = _is_number(value) and (key != "multipleOf" or value > 0)
        return "" if good else "must be a number" + (" above 0" if key == "multipleOf" else "")
    return ""


def _wrong_type(value: Any) -> str:
    names = value if type(value) is list and value else [value]
    if all(type(name) is str and name in TYPES for name in names):
        return ""
    return f"must be one of {', '.join(sorted(TYPES))}, or an array of them"


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float
