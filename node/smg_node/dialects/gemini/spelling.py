"""Spelling of keys: this API's clients write each of them in camelCase or in snake_case."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, TypeVar

from smg_node.core.json_cursor import Cursor

_CAPITAL: Final = re.compile("[A-Z]")

T = TypeVar("T")


@cache
def snake_case(name: str) -> str:
    """Return the snake_case spelling of a camelCase name. Cached: call it with names of the API only."""
    return _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)


def spelled(cursor: Cursor, name: str) -> str:
    """Return the spelling under which `name` is there; `name` itself if it is not, or under both."""
    if name in cursor.values:
        return name
    other = snake_case(name)
    return other if other in cursor.values else name


def both(table: Mapping[str, T]) -> dict[str, T]:
    """Return a table with each of its names in both spellings."""
    return {**table, **{snake_case(name): value for name, value in table.items()}}


def names(*known: str) -> frozenset[str]:
    """Return these names in both spellings."""
    return frozenset((*known, *map(snake_case, known)))
