"""Schema makers: short ways to write the JSON Schemas of parameters. Null is the same as absent."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

INT32_MAX: Final = 2**31 - 1
TOKEN_ID_MAX: Final = 2**32 - 1

NULL: Final[Schema] = {"type": "null"}
FLAG: Final[Schema] = {"type": ["boolean", "null"]}
TEXT: Final[Schema] = {"type": ["string", "null"]}
OBJECT: Final[Schema] = {"type": ["object", "null"]}
TOKEN_ID: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": TOKEN_ID_MAX}
TOKEN_IDS: Final[Schema] = {"type": "array", "items": TOKEN_ID, "minItems": 1}


def text(low: int = 0, high: int | None = None, *, required: bool = False) -> Schema:
    """Return the schema of a string of so many characters."""
    bounds = {"minLength": low} if low else {}
    if high is not None:
        bounds["maxLength"] = high
    return {"type": "string" if required else ["string", "null"], **bounds}


def integer(low: int, high: int | None = None) -> Schema:
    """Return the schema of an integer in `low`..`high`."""
    top = {} if high is None else {"maximum": high}
    return {"type": ["integer", "null"], "minimum": low, **top}


def number(low: float, high: float, *, low_excluded: bool = False) -> Schema:
    """Return the schema of a number in `low`..`high`."""
    bottom = {"exclusiveMinimum" if low_excluded else "minimum": low}
    return {"type": ["number", "null"], **bottom, "maximum": high}


def word(*words: str, required: bool = False) -> Schema:
    """Return the schema of one of these words."""
    return {"enum": list(words) if required else [*words, None]}


def array(
    items: Schema, low: int = 0, high: int | None = None, *, required: bool = False
) -> Schema:
    """Return the schema of a list of so many elements."""
    bounds = {"minItems": low} if low else {}
    if high is not None:
        bounds["maxItems"] = high
    return {"type": "array" if required else ["array", "null"], "items": items, **bounds}


def either(*schemas: Schema) -> Schema:
    """Return the schema of what is one of these."""
    return {"anyOf": list(schemas)}


def keyed(required: Sequence[str] = (), /, **properties: Schema) -> dict[str, Any]:
    """Return the schema of an object with these keys, and any others."""
    needs = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needs}


def optional(schema: Schema) -> Schema:
    """Return the schema of what may also be null."""
    return {"anyOf": [schema, NULL]}


def described(schema: Schema, description: str) -> Schema:
    """Return a schema with words for people."""
    return {**schema, "description": description}


def only(*values: object, why: str) -> Schema:
    """Return the schema of a parameter that is refused unless its value asks for nothing."""
    return {"enum": [*values, None], "description": why}
