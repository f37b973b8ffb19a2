"""Call arguments of a history: text that a model printed for a call, read as the object it is meant to be.

A model may have been cut off in the middle of them, have written half a surrogate pair, a raw newline
in a string, or NaN, and its client sends all of that back. Nothing of it is hidden from the model: what
can be read is read, and what cannot is kept as text. Pure.
"""

import json
from typing import Any, Final

import msgspec

UNREADABLE_KEY: Final = "INVALID_JSON"
"""Key of the text that is no object, where an object is needed; clients of the Messages API know it."""


def read_arguments(text: str) -> dict[str, Any] | None:
    """Return the object that `text` is, also if it is a JSON string of one; None if it is not.

    Nothing at all is the empty object. Halves of surrogate pairs are U+FFFD in it; NaN and the infinities
    are floats.
    """
    if not text.strip():
        return {}
    value: Any = text
    for _ in range(2):
        try:
            value = _value(value)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, str):
            break
    return value if isinstance(value, dict) else None


def without_halves(text: str) -> str:
    """Return the text with U+FFFD for every half of a surrogate pair; two that meet become one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return _whole(json.loads(text, strict=False))


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return without_halves(value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {without_halves(key): _whole(each) for key, each in value.items()}
    return value
