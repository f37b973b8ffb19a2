"""JSON object: an operator's JSON text of one object, checked."""

import json
from typing import Any, Final

_SHOWN_MAX: Final = 100


class _Word(float):
    """What JSON does not have and Python reads: NaN, Infinity, -Infinity."""


def check_json_object(text: str) -> dict[str, Any]:
    """Return the JSON object that `text` is; ValueError, in an operator's words, for any other, for a key twice, and for
    a word such as NaN in place of a number.
    """
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_Word)
        if isinstance(found, dict):
            for key, value in found.items():
                _check_numbers(value, key)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it must be a JSON object: {str(error)[:_SHOWN_MAX]}") from None
    if not isinstance(found, dict):
        raise ValueError('it must be a JSON object, such as {"max_pixels": 1003520}')
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _check_numbers(value: object, path: str) -> None:
    """Return if no word stands for a number in a value; ValueError names where one does."""
    if isinstance(value, _Word):
        raise ValueError(f"{path}: {json.dumps(float(value))} is no number")
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_numbers(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_numbers(inner, f"{path}[{index}]")
