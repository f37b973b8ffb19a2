"""Output form: the form of an answer that both APIs can hold a model to: an object of JSON, or a schema. Pure.

A strict schema has objects that are closed and whose members are all required; any other one is refused by the vendor if
it is called strict, so it is told as a wish.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Constraint
from smg_node.dialects.openai.provider.request_checks import not_here

NAME: Final = "answer"
_decode: Final = msgspec.json.Decoder().decode
_DATA: Final = frozenset({"enum", "const", "default", "examples"})
_BY_NAME: Final = frozenset({"properties", "$defs", "definitions"})
"""Members that hold schemas by names of the client's."""


def output_form(constraint: Constraint, ignored: list[str]) -> dict[str, Any]:
    """Return `json_object`, or `json_schema` with its name, schema and strictness."""
    if constraint.kind == "json_object":
        return {"type": "json_object"}
    if constraint.kind != "json_schema":
        raise not_here("it takes no grammars; use a JSON schema", constraint.where)
    schema = _decode(constraint.value)
    if not isinstance(schema, dict):
        raise not_here("a schema must be an object", constraint.where)
    strict = constraint.strict and is_strict(schema)
    if constraint.strict and not strict:
        ignored.append(f"{constraint.where}.strict")
    return {"type": "json_schema", "name": NAME, "schema": schema, "strict": strict}


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is one that answers can be held to strictly."""
    return schema.get("type") == "object" and _closed(schema)


def _closed(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_closed, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        members, required = schema.get("properties"), schema.get("required")
        names = list(members) if isinstance(members, dict) else []
        named = required if isinstance(required, list) else []
        if schema.get("additionalProperties") is not False or any(x not in named for x in names):
            return False
    return all(
        all(map(_closed, part.values()))
        if name in _BY_NAME and isinstance(part, dict)
        else _closed(part)
        for name, part in schema.items()
        if name not in _DATA
    )
