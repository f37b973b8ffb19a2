"""TypeScript declarations of functions, a namespace of types, as some models are told of their
tools. Pure.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_DEPTH_MAX: Final = 32
_PLAIN: Final = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
}
_STEP: Final = "    "


def namespace(name: str, functions: Iterable[Mapping[str, Any]]) -> str:
    """Return the functions as types, each with its description as a comment before it."""
    lines = [f"## {name}", "", f"namespace {name} {{", ""]
    for function in functions:
        lines += _comment(function.get("description"), "")
        parameters = function.get("parameters")
        taken = ""
        if isinstance(parameters, Mapping) and parameters.get("properties"):
            taken = f"_: {type_of(parameters)}"
        lines += [f"type {function['name']} = ({taken}) => any;", ""]
    return "\n".join([*lines, f"}} // namespace {name}"])


def type_of(schema: Any, indent: str = "", depth: int = 0) -> str:
    """Return the type of the values that a JSON schema describes, `any` where that has no type."""
    if not isinstance(schema, Mapping) or depth > _DEPTH_MAX:
        return "any"
    found = _type(schema, indent, depth)
    if schema.get("nullable") is True and "null" not in found:
        return f"{found} | null"
    return found


def _type(schema: Mapping[str, Any], indent: str, depth: int) -> str:
    constants = schema.get("enum") or ([schema["const"]] if "const" in schema else None)
    if isinstance(constants, list) and constants:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in constants)
    for word in ("oneOf", "anyOf"):
        branches = schema.get(word)
        if isinstance(branches, list) and branches:
            return " | ".join(type_of(branch, indent, depth + 1) for branch in branches)
    kind = schema.get("type")
    if isinstance(kind, list):
        return (
            " | ".join(_type({**schema, "type": each}, indent, depth + 1) for each in kind) or "any"
        )
    if kind == "array":
        items = type_of(schema["items"], indent, depth + 1) if "items" in schema else "any"
        return f"({items})[]" if " | " in items else f"{items}[]"
    if kind == "object" or "properties" in schema:
        return _object(schema, indent, depth)
    return _PLAIN.get(kind, "any") if isinstance(kind, str) else "any"


def _object(schema: Mapping[str, Any], indent: str, depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return "object"
    lines = ["{"]
    for key, value in properties.items():
        lines += _property(key, value, schema, indent, depth)
    return "\n".join([*lines, f"{indent}}}"])


def _property(
    key: str, value: Any, schema: Mapping[str, Any], indent: str, depth: int
) -> Iterator[str]:
    required = schema.get("required")
    mark = "" if isinstance(required, list) and key in required else "?"
    default = ""
    if isinstance(value, Mapping):
        yield from _comment(value.get("description"), indent)
        if value.get("default") is not None:
            default = f" // default: {json.dumps(value['default'], ensure_ascii=False)}"
    yield f"{indent}{key}{mark}: {type_of(value, indent + _STEP, depth + 1)},{default}"


def _comment(text: Any, indent: str) -> list[str]:
    return [f"{indent}// {line}" for line in str(text or "").splitlines()]
