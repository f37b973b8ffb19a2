"""Nested elements: converts elements within elements to JSON, by schema.

    <days><item>Mon</item></days>     ["Mon"]
    <pace><min>3</min></pace>         {"min":3}

An element that holds elements is an object, or a list where they are named `item` or where the schema says so;
elements of one name beside each other are a list; any other is a value of its text. Where the schema wants text,
tags in it are text, and so are tags that do not fit together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from smg_node.parsers.notations.schema_types import (
    STRING,
    Types,
    as_json,
    items_of,
    quoted,
    schema_of,
    types_in,
)

DEPTH_MAX: Final = 128
"""Elements within each other; what is deeper is text."""
ITEM: Final = "item"
"""The name of a list's elements."""


@dataclass(slots=True)
class _Element:
    """An element: its name, and where its inside and its tags stand in the text."""

    text: str
    name: str
    tag_start: int
    start: int
    end: int = -1
    tag_end: int = -1
    children: list["_Element"] = field(default_factory=list)

    @property
    def inside(self) -> str:
        return self.text[self.start : self.end]

    @property
    def is_leaf(self) -> bool:
        """Whether it is a value, for it holds no elements, or text beside them."""
        at = self.start
        for child in self.children:
            if not _blank(self.text, at, child.tag_start):
                return True
            at = child.tag_end
        return not self.children or not _blank(self.text, at, self.end)


class Nesting:
    """Reads elements whose tags begin with `prefix`."""

    def __init__(self, prefix: str) -> None:
        self._tag = re.compile(re.escape(prefix) + r"<(/?)([^<>\n]{1,256})>")

    def json(self, texts: Sequence[str], schema: Any, root: Any) -> str:
        """Return the JSON text of the elements of one name whose insides are `texts`, at least one.

        `schema` is what is declared under that name, and `root` what its references are looked up in.
        """
        return _group([self._element(text) for text in texts], schema, root)

    def items(self, texts: Sequence[str], schema: Any, root: Any) -> list[str]:
        """Return the JSON texts of elements that are a list together; arguments as of `json`."""
        inner = _items(schema, root)
        return [_one(self._element(text), inner, root) for text in texts]

    def _element(self, text: str) -> _Element:
        """Return the element whose inside is `text`; without children where its tags do not fit together."""
        plain = _Element(text, "", 0, 0, len(text), len(text))
        stack = [_Element(text, "", 0, 0, len(text), len(text))]
        for match in self._tag.finditer(text):
            closes, name = match.groups()
            if not closes:
                if len(stack) > DEPTH_MAX:
                    return plain
                stack.append(_Element(text, name, match.start(), match.end()))
                stack[-2].children.append(stack[-1])
            elif len(stack) > 1 and stack[-1].name == name:
                last = stack.pop()
                last.end, last.tag_end = match.span()
            else:
                return plain
        return stack[0] if len(stack) == 1 else plain


def _blank(text: str, start: int, end: int) -> bool:
    return start >= end or text[start:end].isspace()


def _group(elements: Sequence[_Element], schema: Any, root: Any) -> str:
    """Return the JSON of the elements of one name beside each other."""
    types = types_in(schema, root)
    if len(elements) == 1:
        said = _one(elements[0], schema, root)
        if "array" not in types or {"object", "string"} & types or said[0] == "[":
            return said
    return _list(elements, _items(schema, root), root)


def _items(schema: Any, root: Any) -> Any:
    """Return the schema of one of several elements of a name whose schema may know of one alone."""
    return items_of(schema, root) if "array" in types_in(schema, root) else schema


def _list(elements: Sequence[_Element], schema: Any, root: Any) -> str:
    return f"[{','.join(_one(element, schema, root) for element in elements)}]"


def _one(element: _Element, schema: Any, root: Any) -> str:
    types = types_in(schema, root)
    if types == STRING:
        return quoted(element.inside)
    if element.is_leaf:
        return _leaf(element.inside, types)
    if all(child.name == ITEM for child in element.children) and (
        not types or "array" in types or "object" not in types
    ):
        return _list(element.children, items_of(schema, root), root)
    groups: dict[str, list[_Element]] = {}
    for child in element.children:
        groups.setdefault(child.name, []).append(child)
    members = (
        f"{quoted(name)}:{_group(group, schema_of(schema, root, name), root)}"
        for name, group in groups.items()
    )
    return "{" + ",".join(members) + "}"


def _leaf(text: str, types: Types) -> str:
    if not text.strip() and "string" not in types:
        if "array" in types:
            return "[]"
        if "object" in types:
            return "{}"
    return as_json(text, types)
