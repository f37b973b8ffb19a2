"""Partial arguments: arguments of a call that come in pieces, each with the JSON path of where it belongs. Pure.

    {"jsonPath": "$.city", "stringValue": "Par", "willContinue": true}
    {"jsonPath": "$.city", "stringValue": "is"}                           {"city": "Paris", "days": [2]}
    {"jsonPath": "$.days[0]", "numberValue": 2}

Paths are RFC 9535's, as far as they name one place. Places in a list come in order.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from smg_node.core.errors import SmgError
from smg_node.dialects.gemini.provider.answer_facts import broken

PATH_MAX: Final = 1_024
"""Characters of a path; deeper ones could not be encoded again."""
_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]'"\s]+)|\[(?P<index>\d{1,6})\]|\['(?P<one>(?:[^'\\]|\\.)*)'\]|\["(?P<two>(?:[^"\\]|\\.)*)"\]"""
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_VALUES: Final = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArguments:
    """Arguments of one call, joined."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.joined: dict[str, Any] = dict(arguments)
        self._open = ""
        """The path of the text that goes on."""

    def take(self, piece: Mapping[str, Any]) -> None:
        """Take the next piece; UPSTREAM_FAILED for one that belongs nowhere."""
        path = piece.get("jsonPath")
        if not isinstance(path, str):
            raise _nowhere()
        goes_on, self._open = path == self._open, path if piece.get("willContinue") else ""
        names = [name for name in _VALUES if name in piece]
        if not names and not goes_on and not self._open:
            return
        # The beginning and the end of a text may come without any of it.
        value = piece[names[0]] if names and names[0] != "nullValue" else None if names else ""
        if isinstance(value, dict | list):
            raise _nowhere()
        steps = _steps(path)
        place: Any = self.joined
        for step, following in pairwise(steps):
            place = _child(place, step, [] if isinstance(following, int) else {})
        _put(place, steps[-1], value, goes_on=goes_on)


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 1
    if not path.startswith("$") or len(path) > PATH_MAX:
        raise _nowhere()
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise _nowhere()
        index, plain = found["index"], found["name"]
        quoted = found["one"] if found["one"] is not None else found["two"]
        steps.append(
            int(index) if index is not None else plain if plain is not None else _unescaped(quoted)
        )
        at = found.end()
    if not steps:
        raise _nowhere()
    return steps


def _unescaped(name: str) -> str:
    def character(found: re.Match[str]) -> str:
        said = found[1]
        return chr(int(said[1:], 16)) if len(said) > 1 else _ESCAPED.get(said, said)

    text = _ESCAPE.sub(character, name)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _child(place: Any, step: str | int, new: Any) -> Any:
    """Return what is at `step`; `new`, put there, if there is nothing."""
    if isinstance(step, int) and isinstance(place, list) and step <= len(place):
        if step == len(place):
            place.append(new)
        return place[step]
    if isinstance(step, str) and isinstance(place, dict):
        return place.setdefault(step, new)
    raise _nowhere()


def _put(place: Any, step: str | int, value: Any, *, goes_on: bool) -> None:
    before = _child(place, step, "" if isinstance(value, str) else value)
    if goes_on and isinstance(before, str) and isinstance(value, str):
        value = before + value
    place[step] = value


def _nowhere() -> SmgError:
    return broken("the vendor sent a piece of arguments that belongs nowhere")
