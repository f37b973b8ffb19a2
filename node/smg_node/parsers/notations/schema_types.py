"""Schema types: type of a value that was printed without one, by the schema of its parameter.

Many formats print `<parameter=max>3</parameter>`: whether that is the number 3 or the text "3" stands in
the tool's schema alone. The types a schema allows are tried from the narrowest to the widest, and the first
that the text fits decides; a text that fits none is a string, so that no call is ever lost to its types.
"""

import ast
import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

TypeName: TypeAlias = Literal[
    "null", "integer", "number", "boolean", "object", "array", "string", "json"
]
"""The types of JSON Schema; `json` is a value of which the model says that it is printed as JSON."""
Types: TypeAlias = frozenset[TypeName]

UNKNOWN: Final[Types] = frozenset()
"""Nothing is known of a value: JSON, else a Python literal, else a string."""
STRING: Final[Types] = frozenset(("string",))
JSON: Final[Types] = frozenset(("json",))
"""What a model says by `string="false"` and the like; see `not_string`."""

_ALL: Final[tuple[TypeName, ...]] = (
    "null",
    "integer",
    "number",
    "boolean",
    "object",
    "array",
    "string",
)
_DEPTH_MAX: Final = 10
_BRANCHES: Final = ("anyOf", "oneOf", "allOf")
# A longer literal is taken for a string: the compiler behind Python literals needs 100 bytes for each.
_LITERAL_MAX: Final = 65_536
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_WHOLE: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+", re.ASCII)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.?)", re.DOTALL)
_ESCAPES_KNOWN: Final = frozenset("\n\\'\"abfnrtv01234567xNuU")
_BOOLEANS: Final = {"true": "true", "True": "true", "false": "false", "False": "false"}
_OF_PYTHON: Final[Mapping[type, TypeName]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_decode: Final = msgspec.json.Decoder().decode


def not_string(types: Types) -> Types:
    """Return the types of a value that the model labels JSON and whose schema allows `types`."""
    return (types - STRING) | JSON


def types_of(schema: Any, key: str) -> Types:
    """Return the types that the schema of a function's parameters allows for parameter `key`.

    The parameter may be declared in a branch or behind a local reference. `UNKNOWN` for a parameter that
    is not declared, or whose schema says nothing of types.
    """
    found: set[TypeName] = set()
    for declared in _declared(schema, schema, key, 0):
        types = _types(declared, schema, 0)
        if not types:
            return UNKNOWN
        found |= types
    return frozenset(found)


def schema_of(schema: Any, root: Any, key: str) -> Any:
    """Return the first schema that `schema` has for its property `key`, None if it has none."""
    return next(iter(_declared(schema, root, key, 0)), None)


def items_of(schema: Any, root: Any) -> Any:
    """Return the schema of the elements of the array that `schema` describes, None if it says nothing."""
    for part in _branches(schema, root, 0):
        items = part.get("items")
        if isinstance(items, dict):
            return items
    return None


def types_in(schema: Any, root: Any) -> Types:
    """Return the types that `schema` itself allows; references are looked up in `root`."""
    return _types(schema, root, 0)


def as_json(text: str, types: Types) -> str:
    """Return the JSON text of the value that `text` spells, by the types it may have."""
    bare = text.strip()
    if not types or types.issuperset(_ALL):
        return _unknown(bare, text)
    if "null" in types and bare in ("null", "None"):
        return "null"
    if "integer" in types:
        if _INTEGER.fullmatch(bare):
            return bare
        whole = _WHOLE.fullmatch(bare)
        if whole and "number" not in types:
            return whole.group(1)
    if "number" in types and is_number(bare):
        return bare
    if "boolean" in types and bare in _BOOLEANS:
        return _BOOLEANS[bare]
    if "object" in types or "array" in types:
        found = _compound(bare, types)
        if found is not None:
            return found
    if "json" in types:
        return bare if is_json(bare) else _unknown(bare, text)
    return quoted(text)


def is_number(text: str) -> bool:
    """Whether `text` is a number of JSON that does not overflow."""
    return _NUMBER.fullmatch(text) is not None and not math.isinf(float(text))


def quoted(text: str) -> str:
    """Return `text` as a JSON string: only quotes, backslashes and control characters are escaped."""
    return json.dumps(text, ensure_ascii=False)


def escaped(text: str) -> str:
    """Return `text` as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def python_literal(text: str) -> str | None:
    """Return the JSON text of the Python literal `text`, None if it is none that JSON can spell."""
    if len(text) > _LITERAL_MAX:
        return None
    try:
        with warnings.catch_warnings():
            # Python has opinions on how a model writes, such as `3if`; no reader can act on them.
            warnings.simplefilter("ignore", SyntaxWarning)
            value = ast.literal_eval(_ESCAPE.sub(_known_escape, text))
        said = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # Halves of a pair, escaped one by one, are one character; a half alone is none that UTF-8 could say.
        return said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def is_json(text: str) -> bool:
    """Whether `text` is one JSON value."""
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def _known_escape(match: re.Match[str]) -> str:
    """Return the escape as Python reads it without a warning: a backslash that escapes nothing is one."""
    return match.group() if match.group(1) in _ESCAPES_KNOWN else "\\" + match.group()


def _compound(text: str, types: Types) -> str | None:
    kind = {"{": "object", "[": "array"}.get(text[:1])
    if kind is None or kind not in types:
        return None
    return text if is_json(text) else python_literal(text)


def _unknown(bare: str, text: str) -> str:
    if bare[:1] == '"' or not bare:
        # Templates print strings raw: quotes that were printed belong to the value.
        return quoted(text)
    if bare in _BOOLEANS:
        return _BOOLEANS[bare]
    if bare in ("null", "None"):
        return "null"
    if bare[0] in "-0123456789":
        return bare if is_number(bare) else quoted(text)
    if bare[0] in "{[":
        found = bare if is_json(bare) else python_literal(bare)
        if found is not None:
            return found
    return quoted(text)


def _declared(schema: Any, root: Any, key: str, depth: int) -> list[Any]:
    found: list[Any] = []
    for part in _branches(schema, root, depth):
        properties = part.get("properties")
        if isinstance(properties, dict) and key in properties:
            found.append(properties[key])
    return found


def _branches(schema: Any, root: Any, depth: int) -> list[dict[str, Any]]:
    """Return the schema and everything it is made of: branches and what it refers to."""
    if not isinstance(schema, dict) or depth > _DEPTH_MAX:
        return []
    found = [schema]
    target = schema.get("$ref")
    if isinstance(target, str):
        found += _branches(_referred(target, root), root, depth + 1)
    for word in _BRANCHES:
        branches = schema.get(word)
        if isinstance(branches, list):
            for branch in branches[:64]:
                found += _branches(branch, root, depth + 1)
                if len(found) > _PARTS_MAX:
                    return found
    return found


_PARTS_MAX: Final = 256


def _referred(target: str, root: Any) -> Any:
    if target == "#":
        return root
    for place in ("#/$defs/", "#/definitions/"):
        if target.startswith(place) and isinstance(root, dict):
            definitions = root.get(place[2:-1])
            if isinstance(definitions, dict):
                return definitions.get(target[len(place) :].replace("~1", "/").replace("~0", "~"))
    return None


def _types(schema: Any, root: Any, depth: int) -> Types:
    found: set[TypeName] = set()
    nullable = False
    for part in _branches(schema, root, depth):
        said = part.get("type")
        names = said if isinstance(said, list) else [said]
        found.update(name for name in _ALL if name in names)
        values = part.get("enum")
        constants = values if isinstance(values, list) else []
        if "const" in part:
            constants = [*constants, part["const"]]
        for constant in constants:
            name = _OF_PYTHON.get(type(constant))
            if name is not None:
                found.add(name)
        nullable = nullable or part.get("nullable") is True
    # That null is allowed too says nothing of a value whose type is not declared.
    if nullable and found:
        found.add("null")
    return frozenset(found)
