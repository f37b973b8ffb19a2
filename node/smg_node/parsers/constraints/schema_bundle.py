"""Schema bundle: JSON Schemas of several functions under one root, with their definitions moved and
renamed. Pure.

A reference points into the document it stands in. So when schemas become parts of one, what they point to
has to be found from the new root: definitions move there, under another name where one of the same name is
another one; a schema that points to other places of itself moves there as a whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

DEFINITIONS: Final = "$defs"
_PLACES: Final = (DEFINITIONS, "definitions")
_DATA: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are no schemas, whatever they look like."""
_NOT_INSIDE: Final = frozenset({"$schema", "$id", *_PLACES})
"""Keywords that mean something only at a document's root."""

Schema = Mapping[str, Any]


def gathered(schemas: Mapping[str, Schema]) -> tuple[dict[str, Schema], dict[str, Any]]:
    """Return schemas by the same keys that hold under a root with the definitions returned beside them."""
    root: dict[str, Any] = {}
    first: dict[str, Any] = {}
    found = {key: _moved(key, schema, root, first) for key, schema in schemas.items()}
    return found, root


def _moved(key: str, schema: Schema, root: dict[str, Any], first: dict[str, Any]) -> Schema:
    """Return `schema` without its definitions, which go to `root`; `first` is how these stood originally."""
    own = {name: each for place in _PLACES for name, each in _definitions(schema, place)}
    references = list(_references(schema))
    if not references:
        return {word: value for word, value in schema.items() if word not in _NOT_INSIDE}
    if any(_defined(each) not in own for each in references):
        name = _free(key, root)
        root[name] = first[name] = None
        whole = {word: value for word, value in schema.items() if word not in ("$schema", "$id")}
        root[name] = _pointed(whole, lambda to: f"#/{DEFINITIONS}/{_escaped(name)}{to[1:]}")
        return {"$ref": f"#/{DEFINITIONS}/{_escaped(name)}"}
    names = _names(own, root, first)

    def moved(to: str) -> str:
        defined = _defined(to)
        assert defined is not None
        behind = to.split("/", 3)[3:]
        return "/".join((f"#/{DEFINITIONS}/{_escaped(names[defined])}", *behind))

    for name, each in own.items():
        if names[name] not in root:
            root[names[name]] = _pointed(each, moved)
            first[names[name]] = each
    inside = {word: value for word, value in schema.items() if word not in _NOT_INSIDE}
    result = _pointed(inside, moved)
    assert isinstance(result, dict)
    return result


def _names(own: Schema, root: Schema, first: Schema) -> dict[str, str]:
    """Return under which names definitions go to `root`: another one where theirs is another's.

    One that is the same there is shared, unless something it points to is not.
    """
    other: set[str] = set()
    before = -1
    while len(other) != before:
        before = len(other)
        for name, each in own.items():
            if name not in root or name in other:
                continue
            points = {_defined(to) for to in _references(each)}
            if first[name] != each or points & other:
                other.add(name)
    taken = dict.fromkeys((*root, *own))
    names = {name: name for name in own}
    for name in own:
        if name in other:
            names[name] = _free(name, taken)
            taken[names[name]] = None
    return names


def _free(name: str, taken: Mapping[str, Any]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def _definitions(schema: Schema, place: str) -> Iterator[tuple[str, Any]]:
    values = schema.get(place)
    if isinstance(values, Mapping):
        yield from values.items()


def _references(schema: Any) -> Iterator[str]:
    """Yield every pointer into the schema itself."""
    if isinstance(schema, Mapping):
        for word, value in schema.items():
            if word == "$ref" and isinstance(value, str):
                if value == "#" or value.startswith("#/"):
                    yield value
            elif word not in _DATA:
                yield from _references(value)
    elif isinstance(schema, list | tuple):
        for each in schema:
            yield from _references(each)


def _pointed(schema: Any, moved: Any) -> Any:
    """Return a copy whose pointers are what `moved` makes of them."""
    if isinstance(schema, Mapping):
        return {
            word: (
                moved(value)
                if word == "$ref" and isinstance(value, str) and _inside(value)
                else value
                if word in _DATA
                else _pointed(value, moved)
            )
            for word, value in schema.items()
        }
    if isinstance(schema, list | tuple):
        return [_pointed(each, moved) for each in schema]
    return schema


def _inside(reference: str) -> bool:
    return reference == "#" or reference.startswith("#/")


def _defined(reference: str) -> str | None:
    """Return the name of the definition that a pointer goes to or into, None if it goes elsewhere."""
    parts = reference.split("/", 3)
    if len(parts) < 3 or parts[1] not in _PLACES:
        return None
    return unquote(parts[2]).replace("~1", "/").replace("~0", "~")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def array_of_calls(schemas: Mapping[str, Schema], *, parallel: bool = True) -> dict[str, Any]:
    """Return the schema of `[{"name": …, "parameters": …}, …]` for functions with these parameters.

    At least one call; exactly one without `parallel`.
    """
    inside, definitions = gathered(schemas)
    calls: Sequence[Any] = [
        {
            "type": "object",
            "properties": {"name": {"const": name}, "parameters": parameters},
            "required": ["name", "parameters"],
            "additionalProperties": False,
        }
        for name, parameters in inside.items()
    ]
    array: dict[str, Any] = {"type": "array", "minItems": 1, "items": {"anyOf": calls}}
    if not parallel:
        array["maxItems"] = 1
    if definitions:
        array[DEFINITIONS] = definitions
    return array
