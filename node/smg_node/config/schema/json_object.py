"""JSON object: an operator's JSON text of one object, checked."""

import json
from typing import Final

_SHOWN_MAX: Final = 100


def check_json_object(text: str) -> None:
    """Raise ValueError, in an operator's words, unless `text` is a JSON object without keys that stand twice."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it must be a JSON object: {str(error)[:_SHOWN_MAX]}") from None
    if not isinstance(found, dict):
        raise ValueError('it must be a JSON object, such as {"max_pixels": 1003520}')


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")
