"""Schema conversion: the API's own form of schemas (OpenAPI 3.0, types in capitals) to JSON Schema.

    {"type": "STRING", "nullable": true, "format": "enum", "enum": ["a"]}
    {"type": ["string", "null"], "enum": ["a", null]}

Properties come in the order that `propertyOrdering` asks for: engines print them in the order of the
schema. What is JSON Schema already stays as it is.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from smg_node.dialects.gemini.spelling import snake_case

_UNSPECIFIED: Final = "TYPE_UNSPECIFIED"
# How large a number may be, or that a text is one of several, says the rest of the schema.
_TYPE_FORMATS: Final = frozenset({"int32", "int64", "float", "double", "enum"})
_COUNTS: Final = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip
_RENAMED: Final = {"defs": "$defs", "ref": "$ref"}
_LEFT_OUT: Final = frozenset({"nullable", "propertyOrdering", "example"})
_CAMEL: Final = {
    snake_case(name): name
    for name in (*_COUNTS, "anyOf", "additionalProperties", "propertyOrdering")
}


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a schema in the API's form; what is wrong in it stays wrong."""
    said = {_CAMEL.get(key, key): value for key, value in schema.items() if value is not None}
    made: dict[str, Any] = {}
    for key, value in said.items():
        if key not in _LEFT_OUT:
            convert = _CONVERSIONS.get(key)
            made[_RENAMED.get(key, key)] = value if convert is None else convert(value)
    if made.get("type") == "":
        del made["type"]
    if type(made.get("format")) is str and made["format"] in _TYPE_FORMATS:
        del made["format"]
    order = said.get("propertyOrdering")
    if type(order) is list and type(made.get("properties")) is dict:
        made["properties"] = _ordered(made["properties"], order)
    return _or_null(made) if said.get("nullable") is True else made


def _child(value: Any) -> Any:
    return json_schema(value) if type(value) is dict else value


def _map(value: Any) -> Any:
    if type(value) is not dict:
        return value
    return {name: _child(child) for name, child in value.items()}


def _list(value: Any) -> Any:
    return [_child(child) for child in value] if type(value) is list else value


def _type(value: Any) -> Any:
    """Return a type in small letters; "" for one that says nothing."""
    if type(value) is list:
        return [_type(each) for each in value]
    if type(value) is not str:
        return value
    return "" if value == _UNSPECIFIED else value.lower() if value.isupper() else value


def _count(value: Any) -> Any:
    """Return a count, which the API's form may spell as text."""
    return int(value) if type(value) is str and value.isdecimal() and len(value) < 20 else value


def _ordered(properties: dict[str, Any], order: list[Any]) -> dict[str, Any]:
    first = {name: properties[name] for name in order if type(name) is str and name in properties}
    return {**first, **properties}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of what this one allows, or null."""
    kind = schema.get("type")
    if type(kind) is not str:
        return schema if kind is not None or not schema else {"anyOf": [schema, {"type": "null"}]}
    wider = {**schema, "type": [kind, "null"]} if kind != "null" else schema
    enum = schema.get("enum")
    return {**wider, "enum": [*enum, None]} if type(enum) is list and None not in enum else wider


_CONVERSIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "type": _type,
    "items": _child,
    "additionalProperties": _child,
    "properties": _map,
    "defs": _map,
    "$defs": _map,
    "anyOf": _list,
    "oneOf": _list,
    "allOf": _list,
    "prefixItems": _list,
    **dict.fromkeys(_COUNTS, _count),
}
