"""JSON object: an operator's JSON text of one object, checked."""

import json
from typing import Any, Final

_SHOWN_MAX: Final = 100


def check_json_object(text: str) -> dict[str, Any]:
    """Return the JSON object that `text` is; ValueError, in an operator's words, for any other, and for a key twice."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
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


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")
