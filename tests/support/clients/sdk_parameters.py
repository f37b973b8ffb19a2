"""Official client's parameter types: every key of a body, also those inside objects, with values for it.

A `KeyCase` is one key at one place: bodies that have it, and the same body without it. What surrounds it is
as small as its types allow.
"""

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

_WRAPPERS = (Required, NotRequired, Annotated)
_LISTS = ("list", "Iterable", "Sequence", "SequenceNotStr")
Put = Callable[[Any], dict[str, Any]]
"""Makes a whole body of a value at some place."""


@dataclass(frozen=True)
class KeyCase:
    """One key: its path with the names of the types on the way, and bodies with and without it."""

    path: str
    without: dict[str, Any]
    bodies: tuple[dict[str, Any], ...]


# What objects need beyond their types, by the names of these: one of several keys, for instance.
_NEEDED: dict[str, dict[str, Any]] = {
    "ChatCompletionAssistantMessageParam": {"content": "x"},
    "FileFile": {"file_data": "x"},
    "FunctionCallOutput": {"call_id": "c"},
    "JSONSchema": {"schema": {"type": "object"}},
    "ResponseInputFileContentParam": {"file_data": "x"},
    "ResponseInputFileParam": {"file_data": "x"},
    "ResponseInputImageContentParam": {"image_url": "x"},
    "ResponseInputImageParam": {"image_url": "x"},
}


def key_cases(params: Any, around: dict[str, Any]) -> Iterator[KeyCase]:
    """Yield every key of the parameters of one method; all bodies have what is `around`."""
    yield from _keys(params, lambda value: {**around, **value}, "", frozenset(), {})


def _keys(
    kind: Any, put: Put, path: str, seen: frozenset[Any], values: dict[str, Any] | None = None
) -> Iterator[KeyCase]:
    kind = _bare(kind)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        for one in get_args(kind):
            yield from _keys(one, put, path, seen)
    elif origin is not None and origin.__name__ in _LISTS:
        yield from _keys(get_args(kind)[0], lambda value: put([value]), f"{path}[]", seen)
    elif _is_object(kind) and kind not in seen:
        base = _smallest(kind) if values is None else values
        for key, inner in get_type_hints(kind, include_extras=True).items():
            other = {name: value for name, value in base.items() if name != key}
            here = f"{path}({kind.__name__}).{key}" if path else key
            bodies = tuple(put({**other, key: value}) for value in _samples(inner))
            yield KeyCase(here, put(other), bodies)
            yield from _keys(inner, _into(put, other, key), here, seen | {kind})


def _into(put: Put, other: dict[str, Any], key: str) -> Put:
    return lambda value: put({**other, key: value})


def _bare(kind: Any) -> Any:
    while True:
        if get_origin(kind) in _WRAPPERS:
            kind = get_args(kind)[0]
        elif hasattr(kind, "__value__"):
            kind = kind.__value__
        else:
            return kind


def _is_object(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__required_keys__")


def _smallest(kind: Any) -> dict[str, Any]:
    """Return an object with the required keys only."""
    hints = get_type_hints(kind, include_extras=True)
    # Where annotations are texts, the class itself does not know which keys are marked so.
    required = {
        key: _samples(hint)[0]
        for key, hint in hints.items()
        if get_origin(hint) is Required or key in kind.__required_keys__
    }
    return {**required, **_NEEDED.get(kind.__name__, {})}


_PLAIN: dict[Any, list[Any]] = {
    str: ["x", "msg_3"],
    bool: [True, False],
    int: [2],
    float: [0.5],
    object: [{"x": "y"}],
}


def _samples(kind: Any) -> list[Any]:
    """Return some values of a type, the smallest first; never null, which asks for nothing."""
    kind = _bare(kind)
    origin = get_origin(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if origin is Literal:
        return [value for value in get_args(kind) if value is not None]
    if origin in (Union, types.UnionType):
        return [value for one in get_args(kind) for value in _samples(one)]
    if origin is not None and origin.__name__ in _LISTS:
        return [[value] for value in _samples(get_args(kind)[0])]
    if _is_object(kind):
        return [_smallest(kind)]
    return [] if kind is type(None) else [{"x": "y"}]
