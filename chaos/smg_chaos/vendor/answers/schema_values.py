"""Schema values: arguments and answers that fit a JSON schema, the same for the same schema and words."""

from collections.abc import Mapping
from typing import Any, Final

_DEPTH_MAX: Final = 12
_WORDS: Final[Mapping[str, Any]] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
}


def value_of(schema: Any, given: Mapping[str, str], *, name: str = "", depth: int = 0) -> Any:
    """Return a value that fits `schema`; `given` has values by the names of properties."""
    if not isinstance(schema, Mapping) or depth > _DEPTH_MAX:
        return None
    if "const" in schema:
        return schema["const"]
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return given[name] if name in given and given[name] in choices else choices[0]
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return value_of(schema[key][0], given, name=name, depth=depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0] if kind else "string"
    kind = str(kind).lower()
    if kind == "object":
        return _object(schema, given, depth)
    if kind == "array":
        return [value_of(schema.get("items", {}), given, name=name, depth=depth + 1)]
    return _scalar(kind, given.get(name))


def _object(schema: Mapping[str, Any], given: Mapping[str, str], depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    wanted = schema.get("required")
    names = wanted if isinstance(wanted, list) else list(properties)
    known = [name for name in properties if name in names or name in given]
    return {name: value_of(properties[name], given, name=name, depth=depth + 1) for name in known}


def _scalar(kind: str, given: str | None) -> Any:
    if given is None:
        return _WORDS.get(kind, "text")
    try:
        if kind == "integer":
            return int(given)
        if kind == "number":
            return float(given)
    except ValueError:
        return _WORDS[kind]
    return given == "true" if kind == "boolean" else given
