"""JSON cursor: reads a decoded JSON object key by key, and records the path of every mistake.

A `Cursor` stands on one object of a body. Its getters return the value at a key, checked for type and
range, or None; explicit null is the same as absent. A wrong value is noted with its JSON path
(`messages[2].content[0].image_url`) and reading goes on, so a caller learns of all mistakes in one
answer. The tenth problem ends the reading, which bounds the work done for garbage. Paths are put
together only when a problem is noted: a good body never pays for them.

What counts as what: `true` is not an integer. `5.0` is the integer 5, as in JSON Schema and for clients whose
language has one kind of number; 5.5 is none. An integer is a number. NaN and the infinities, which no JSON
holds but Python's floats do, are outside every range.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, TypeVar

from smg_node.core.errors import ErrorKind, SmgError

PROBLEMS_MAX: Final = 10
IGNORED_MAX: Final = 32
"""The names end up in a header."""

# The longest part of a client's own words that a message or a path repeats.
_QUOTED_MAX: Final = 64
_PLAIN_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")

T = TypeVar("T")


class Problems:
    """What is wrong with one body, in the order it was found; at most ten.

    `ignored` are the paths of keys inside objects that nothing reads, at most 32. With `strict` such a
    key is a problem.
    """

    __slots__ = ("_found", "ignored", "strict")

    def __init__(self, *, strict: bool = False) -> None:
        self._found: list[tuple[str, str, str]] = []
        self.ignored: list[str] = []
        self.strict = strict

    def add(self, where: str, message: str, code: str = "invalid_value") -> None:
        """Note a problem at the path `where`; raises at once when it is the tenth."""
        self._found.append((where, message, code))
        if len(self._found) == PROBLEMS_MAX:
            raise self._error()

    def check(self) -> None:
        """Raise INVALID_REQUEST if anything was noted: `where` and `code` are the first one's."""
        if self._found:
            raise self._error()

    def __len__(self) -> int:
        return len(self._found)

    def _error(self) -> SmgError:
        where, message, code = self._found[0]
        if len(self._found) > 1:
            rows = "; ".join(f"{at or 'body'}: {what}" for at, what, _ in self._found)
            more = " or more" if len(self._found) == PROBLEMS_MAX else ""
            message = f"{len(self._found)}{more} problems: {rows}"
        elif where:
            message = f"{where}: {message}"
        return SmgError(ErrorKind.INVALID_REQUEST, message, where=where or None, code=code)


class Cursor:
    """One JSON object of a body, and the way to it."""

    __slots__ = ("_index", "_key", "_parent", "problems", "values")

    def __init__(
        self,
        values: dict[str, Any],
        problems: Problems,
        parent: "Cursor | None" = None,
        key: str = "",
        index: int | None = None,
    ) -> None:
        self.values = values
        self.problems = problems
        self._parent = parent
        self._key = key
        self._index = index

    # ── Where we are ─────────────────────────────────────────────────────────

    def path(self, key: str = "", index: int | None = None) -> str:
        """Return the JSON path of this object, or of `key` (and element `index`) in it."""
        base = "" if self._parent is None else self._parent.path(self._key, self._index)
        if not key:
            return base
        base += path_step(key) if base or not _PLAIN_SEGMENT.match(key) else key
        return base if index is None else f"{base}[{index}]"

    def problem(
        self, key: str, message: str, code: str = "invalid_value", index: int | None = None
    ) -> None:
        """Note what is wrong at `key`, or with this object itself if `key` is empty."""
        self.problems.add(self.path(key, index), message, code)

    def unsupported(self, key: str, message: str) -> None:
        """Note that nothing here can honour `key` without changing its meaning."""
        self.problem(key, message, "unsupported_parameter")

    def unknown(self, key: str, known: Sequence[str]) -> None:
        """Note that there is no parameter `key`, and which one may have been meant."""
        # Loaded with the first mistake.
        from difflib import get_close_matches

        near = get_close_matches(key[:_QUOTED_MAX], known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        self.problem(key, f"there is no parameter of this name{hint}", "unknown_parameter")

    def only(self, known: Collection[str]) -> None:
        """Note every key but these: nothing reads it, so the client is told. Null asks for nothing."""
        values = self.values
        if len(values) <= len(known) and all(key in known for key in values):
            return
        for key, value in values.items():
            if key not in known and value is not None:
                if self.problems.strict:
                    self.unknown(key, tuple(known))
                else:
                    self.ignore(key)

    def ignore(self, key: str) -> None:
        """Note that `key` has no effect."""
        if len(self.problems.ignored) < IGNORED_MAX:
            self.problems.ignored.append(self.path(key))

    def has(self, key: str) -> bool:
        """Whether `key` is there and not null."""
        return self.values.get(key) is not None

    # ── Values ───────────────────────────────────────────────────────────────

    def raw(self, key: str, *, required: bool = False) -> Any:
        """Return whatever stands at `key`; None if absent, which is noted if it is required."""
        value = self.values.get(key)
        if value is None and required:
            why = "must not be null" if key in self.values else "is required"
            self.problem(key, why, "missing_required_parameter")
        return value

    def text(
        self,
        key: str,
        *,
        required: bool = False,
        characters_min: int = 0,
        characters_max: int | None = None,
    ) -> str | None:
        """Return a string of so many characters, or None."""
        value = self.raw(key, required=required)
        if value is None:
            return None
        if type(value) is not str:
            self._not(key, "a string", value)
            return None
        if len(value) < characters_min:
            self.problem(key, "must not be empty" if characters_min == 1 else "is too short")
            return None
        if characters_max is not None and len(value) > characters_max:
            self.problem(key, f"must have at most {characters_max} characters, has {len(value)}")
            return None
        return value

    def word(self, key: str, words: Sequence[str], *, required: bool = False) -> str | None:
        """Return one of `words`, or None."""
        value = self.raw(key, required=required)
        if value is None:
            return None
        if type(value) is not str:
            self._not(key, "a string", value)
            return None
        if value not in words:
            allowed = ", ".join(repr(word) for word in words)
            self.problem(key, f"must be one of {allowed}; got {quoted(value)}")
            return None
        return value

    def flag(self, key: str) -> bool | None:
        """Return true or false, or None."""
        value = self.values.get(key)
        if value is None or type(value) is bool:
            return value
        self._not(key, "a boolean", value)
        return None

    def integer(
        self, key: str, *, low: int, high: int | None = None, required: bool = False
    ) -> int | None:
        """Return an integer in `low`..`high`, or None."""
        value = self.raw(key, required=required)
        if value is None:
            return None
        if type(value) is not int:
            value = whole(value)
            if value is None:
                self._not(key, "an integer", self.values[key])
                return None
        if value < low or (high is not None and value > high):
            self.problem(key, f"must be {_range(low, high)}; got {_shown(value)}")
            return None
        return value

    def number(
        self, key: str, *, low: float, high: float, low_excluded: bool = False
    ) -> float | None:
        """Return a finite number in `low`..`high`, without `low` itself if it is excluded, or None."""
        value = self.values.get(key)
        if value is None:
            return None
        if type(value) is not float and type(value) is not int:
            self._not(key, "a number", value)
            return None
        if not low <= value <= high or (low_excluded and value == low):
            wanted = f"above {low} and at most {high}" if low_excluded else _range(low, high)
            self.problem(key, f"must be {wanted}; got {_shown(value)}")
            return None
        return float(value)

    def object(self, key: str, *, required: bool = False) -> "Cursor | None":
        """Return a cursor on the object at `key`, or None."""
        value = self.raw(key, required=required)
        if value is None:
            return None
        if type(value) is not dict:
            self._not(key, "an object", value)
            return None
        return Cursor(value, self.problems, self, key)

    def array(
        self, key: str, *, required: bool = False, at_least: int = 0, at_most: int | None = None
    ) -> list[Any] | None:
        """Return a list of so many elements, themselves unchecked, or None."""
        value = self.raw(key, required=required)
        if value is None:
            return None
        if type(value) is not list:
            self._not(key, "an array", value)
            return None
        if len(value) < at_least:
            self.problem(key, f"must have at least {at_least} element{'s' if at_least > 1 else ''}")
            return None
        if at_most is not None and len(value) > at_most:
            self.problem(key, f"must have at most {at_most} elements, has {len(value)}")
            return None
        return value

    def objects(
        self, key: str, *, required: bool = False, at_least: int = 0, at_most: int | None = None
    ) -> Iterator["Cursor"]:
        """Yield a cursor for every element at `key`; one that is no object is noted and left out."""
        values = self.array(key, required=required, at_least=at_least, at_most=at_most)
        for index, value in enumerate(values or ()):
            cursor = self.element(key, index, value)
            if cursor is not None:
                yield cursor

    def element(self, key: str, index: int, value: Any) -> "Cursor | None":
        """Return a cursor on `value`, element `index` of the array at `key`; None if it is no object."""
        if type(value) is not dict:
            self._not(key, "an object", value, index)
            return None
        return Cursor(value, self.problems, self, key, index)

    def standing_for(self, values: dict[str, Any]) -> "Cursor":
        """Return a cursor on `values` in the place of this object: what is wrong with them is noted at its path."""
        return Cursor(values, self.problems, self._parent, self._key, self._index)

    def elements(
        self, key: str, kind: type[T], name: str, values: Sequence[Any]
    ) -> "list[T] | None":
        """Return `values`, the array at `key`, if each is exactly a `kind`, called `name`; else None.

        Where integers are wanted, `5.0` is one.
        """
        found = list(values)
        for index, value in enumerate(found):
            if type(value) is not kind:
                number = whole(value) if kind is int else None
                if number is None:
                    self._not(key, name, value, index)
                    return None
                found[index] = number
        return found

    def _not(self, key: str, wanted: str, value: Any, index: int | None = None) -> None:
        self.problem(key, f"must be {wanted}, not {kind_of(value)}", "invalid_type", index)


def path_step(key: str) -> str:
    """Return what leads from an object's path to its `key`: `.key`, or `['a key']` for any other."""
    return f".{key}" if _PLAIN_SEGMENT.match(key) else f"[{quoted(key)}]"


def whole(value: Any) -> int | None:
    """Return the integer that a number without a fraction is, such as `5.0`; None for other values."""
    if type(value) is int:
        return value
    # NaN and the infinities are no integers, and say so.
    return int(value) if type(value) is float and value.is_integer() else None


def kind_of(value: Any) -> str:
    """Return what a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number" if value.is_integer() else "a number with a fraction"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def quoted(text: str) -> str:
    """Return a client's own words, quoted, cut to 64 characters and free of control characters."""
    cut = text if len(text) <= _QUOTED_MAX else text[: _QUOTED_MAX - 1] + "…"
    return repr(cut)


def _range(low: float, high: float | None) -> str:
    return f"at least {low}" if high is None else f"between {low} and {high}"


def _shown(value: float) -> str:
    # An integer of 4,000 digits is slow to print, and no help to anyone.
    return f"{value}" if abs(value) < 1e30 else "a number out of all proportion"
