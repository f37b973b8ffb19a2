"""Schema check: bounds and validity of a JSON Schema before an engine gets it. Pure.

Bounded in depth and size, no references out of it, none in a circle, keywords of the right shape,
patterns that are regular expressions; and, where `jsonschema_rs` is installed (the extra `grammar`), valid by its own meta-schema. Nothing is ever
fetched.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

from smg_node.core.json_cursor import path_step
from smg_node.prompts.constraints.regex_size import PatternError, pattern_states

DEPTH_MAX: Final = 64
NODES_MAX: Final = 20_000

_TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")
_DRAFTS: Final = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
)
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaError(ValueError):
    """A schema that is not valid; `path` leads to the place, from the schema's root."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


def check_schema(schema: Any) -> None:
    """Raise `SchemaError` unless `schema`, a decoded JSON value, is a usable JSON Schema."""
    if not isinstance(schema, dict):
        raise SchemaError("a JSON Schema must be an object", "")
    draft = schema.get("$schema")
    if draft is not None and (not isinstance(draft, str) or draft.rstrip("#") not in _DRAFTS):
        raise SchemaError("it names a JSON Schema draft that is not known", ".$schema")
    _Walk(schema).run()
    _check_by_meta_schema(schema)


class _Walk:
    """Visits every subschema once, without recursion."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._pending: list[tuple[Any, str, int]] = [(root, "", 0)]
        self._visited = 0
        # References that were followed to their end; every anchor, once one is asked for.
        self._followed: set[str] = set()
        self._anchors: dict[str, Any] | None = None

    def run(self) -> None:
        while self._pending:
            schema, path, depth = self._pending.pop()
            self._visited += 1
            if self._visited > NODES_MAX:
                raise SchemaError(f"it has more than {NODES_MAX} subschemas", path)
            if depth > DEPTH_MAX:
                raise SchemaError(f"it is more than {DEPTH_MAX} levels deep", path)
            if isinstance(schema, bool):
                continue
            if not isinstance(schema, dict):
                raise SchemaError("a schema must be an object or a boolean", path)
            self._keywords(schema, path, depth + 1)

    def _keywords(self, schema: dict[str, Any], path: str, depth: int) -> None:
        for keyword, value in schema.items():
            place = f"{path}.{keyword}"
            check = _CHECKS.get(keyword)
            if check is not None:
                check(value, place)
            if keyword in _REFERENCES:
                self._reference(value, place)
            elif keyword in _ONE:
                self._pending.append((value, place, depth))
            elif keyword in _MANY:
                self._each(_list(value, place), place, depth)
            elif keyword == "items":
                if isinstance(value, list):
                    self._each(value, place, depth)
                else:
                    self._pending.append((value, place, depth))
            elif keyword in _NAMED:
                for name, inner in _object(value, place).items():
                    inside = place + path_step(name)
                    if keyword == "patternProperties":
                        _pattern(name, inside)
                    self._pending.append((inner, inside, depth))

    def _each(self, values: list[Any], path: str, depth: int) -> None:
        for at, value in enumerate(values):
            self._pending.append((value, f"{path}[{at}]", depth))

    def _reference(self, value: Any, path: str) -> None:
        """Follow a chain of references to the end: it must lead somewhere, and not back."""
        seen: set[str] = set()
        while True:
            if not isinstance(value, str) or not value.startswith("#"):
                raise SchemaError("only references within the schema are followed", path)
            if value in seen:
                raise SchemaError(f"the reference {value!r} leads back to itself", path)
            if value in self._followed:
                break
            seen.add(value)
            target = self._resolve(value, path)
            if not isinstance(target, dict) or "$ref" not in target:
                break
            value = target["$ref"]
        self._followed |= seen

    def _resolve(self, reference: str, path: str) -> Any:
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._anchor(pointer, path)
        target: Any = self._root
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and name in target:
                target = target[name]
            elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                raise SchemaError(f"the reference {reference!r} leads nowhere", path)
        return target

    def _anchor(self, name: str, path: str) -> Any:
        if self._anchors is None:
            self._anchors = _anchors(self._root)
        if name not in self._anchors:
            raise SchemaError(f"there is no anchor {name!r}", path)
        return self._anchors[name]


def _anchors(root: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pending: list[Any] = [root]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            for key in ("$anchor", "$dynamicAnchor"):
                name = value.get(key)
                if isinstance(name, str):
                    found[name] = value
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return found


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SchemaError("an object is needed here", path)
    return value


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise SchemaError("a list that is not empty is needed here", path)
    return value


def _type(value: Any, path: str) -> None:
    names = value if isinstance(value, list) and value else [value]
    for name in names:
        if not isinstance(name, str) or name not in _TYPES:
            raise SchemaError(f"a type is one of {', '.join(_TYPES)}", path)


def _count(value: Any, path: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise SchemaError("a count of at least 0 is needed here", path)


def _number(value: Any, path: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SchemaError("a number is needed here", path)


def _text(value: Any, path: str) -> None:
    if not isinstance(value, str):
        raise SchemaError("a string is needed here", path)


def _pattern(value: Any, path: str) -> None:
    _text(value, path)
    try:
        pattern_states(value, in_schema=True)
    except PatternError as error:
        raise SchemaError(f"the regular expression cannot be used: {error}", path) from error


def _texts(value: Any, path: str) -> None:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise SchemaError("a list of strings is needed here", path)


# One subschema, a list of them, named ones.
_ONE: Final = frozenset(
    {
        *("additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems"),
        *("propertyNames", "contains", "not", "if", "then", "else"),
    }
)
_MANY: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_CHECKS: Final[Mapping[str, Callable[[Any, str], object]]] = MappingProxyType(
    {
        "type": _type,
        "enum": _list,
        "required": _texts,
        "pattern": _pattern,
        "format": _text,
    }
    | dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count
    )
    | dict.fromkeys(("minimum", "maximum", "multipleOf"), _number)
)


def _check_by_meta_schema(schema: dict[str, Any]) -> None:
    try:
        import jsonschema_rs  # the extra `grammar`
    except ImportError:
        return
    try:
        jsonschema_rs.meta.validate(schema)
    except jsonschema_rs.ValidationError as error:
        path = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
        )
        raise SchemaError(str(error.message), path) from error
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise SchemaError(str(error), "") from error
