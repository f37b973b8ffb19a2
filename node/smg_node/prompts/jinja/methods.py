"""Methods of texts, lists and dicts that a template may call, and the limits of what they may make.

A closed list: what is not here cannot be reached. Methods that can make something much larger than
what they are given are asked for the size first.
"""

import re
from collections.abc import Callable, Mapping
from string import Formatter
from types import MappingProxyType
from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Cycler
from markupsafe import Markup

from smg_node.prompts.jinja.render_budget import LimitError, Meter
from smg_node.prompts.jinja.safe_values import ELEMENT, items, kept, show, weigh

# Pieces a text may be split into without a separator, which cannot be counted beforehand.
_PIECES_MAX: Final = 1_000_000
_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PLAIN_TEXT: Final = _names(
    "capitalize casefold count endswith find index isalnum isalpha isascii isdecimal isdigit"
    " isidentifier islower isnumeric isprintable isspace istitle isupper lower lstrip partition"
    " removeprefix removesuffix rfind rindex rpartition rstrip startswith strip swapcase title upper"
)
_PLAIN: Final[Mapping[type, frozenset[str]]] = MappingProxyType(
    {
        str: _PLAIN_TEXT,
        Markup: _PLAIN_TEXT,
        dict: frozenset({"copy", "get", "items", "keys", "values"}),
        list: frozenset({"copy", "count", "index"}),
        tuple: frozenset({"count", "index"}),
        LoopContext: _names(
            "changed cycle depth depth0 first index index0 last length nextitem previtem revindex"
            " revindex0"
        ),
        Cycler: frozenset({"current", "items", "next", "reset"}),
        range: frozenset({"count", "index", "start", "step", "stop"}),
    }
)

Guard = Callable[[Meter, Any, tuple[Any, ...], dict[str, Any]], Any]


class GuardedMethod:
    """A method of a text whose result's size is checked before it is called."""

    __slots__ = ("_guard", "_text")

    def __init__(self, text: str, guard: Guard) -> None:
        self._text = text
        self._guard = guard

    def run(self, meter: Meter, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the method; `LimitError` if its result would be too large."""
        return self._guard(meter, self._text, args, kwargs)


def plain(kind: type, name: str) -> bool:
    """Whether attribute `name` of a value of that exact type may be used as it is."""
    allowed = _PLAIN.get(kind)
    return allowed is not None and name in allowed


def guarded(kind: type, name: str) -> Guard | None:
    """Return the guard of method `name`, if values of that type have a guarded one."""
    return _GUARDS.get(name) if kind is str or kind is Markup else None


def replacements(text: str, old: str, new: str, count: int) -> int:
    """Return the most characters `text.replace(old, new, count)` can have."""
    found = text.count(old)
    times = found if count < 0 else min(found, count)
    # A `Markup` escapes what it is given, to five times its length at most.
    factor = 5 if isinstance(text, Markup) else 1
    return len(text) + times * max(0, len(new) * factor - len(old))


# A width or precision of four digits or more, or one taken from the values; and a key with a
# parenthesis in it, behind which one could hide.
_WIDE: Final = re.compile(r"%(?:\([^()]*\))?[-+ #0]*(?:\*|\d{4}|\d*\.(?:\*|\d{4}))|%\([^)]*\(")
_LONG_NUMBER: Final = re.compile(r"\d{4}")
_WIDTH_MAX: Final = 999


def percent(meter: Meter, template: str, values: Any) -> str:
    """Return `template % values`, paid for before it is made."""
    if _WIDE.search(template):
        raise LimitError("output", f"it pads to more than {_WIDTH_MAX} characters")
    weight = weigh(meter, values, printing=True)
    fields = template.count("%")
    padding = fields * _WIDTH_MAX if any(map(str.isdigit, template)) else 0
    # Only a named value can be shown more than once; `%r` writes ten characters for one at worst.
    meter.allow(len(template) + padding + 10 * weight * max(1, template.count("%(")))
    return show(meter, template % values)


class _MeteredFormatter(SandboxedFormatter):
    """`str.format` where every field is looked at before it is shown."""

    def __init__(self, environment: SandboxedEnvironment, meter: Meter) -> None:
        super().__init__(environment)
        self._meter = meter

    def format_field(self, value: Any, format_spec: str) -> str:
        if _LONG_NUMBER.search(format_spec):
            raise LimitError("output", f"it pads to more than {_WIDTH_MAX} characters")
        weigh(self._meter, value, printing=True)
        return show(self._meter, super().format_field(value, format_spec))

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion is not None:
            weigh(self._meter, value, printing=True)
        return super().convert_field(value, conversion)


def format_text(
    environment: SandboxedEnvironment,
    meter: Meter,
    text: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> str:
    """Return `text.format(*args, **kwargs)`, every field paid for."""
    if isinstance(text, Markup):
        raise SecurityError("format is not available on text marked as safe")
    formatter: Formatter = _MeteredFormatter(environment, meter)
    return show(meter, formatter.vformat(text, args, kwargs))


def _join(meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (values,) = args
    parts = items(meter, values)
    length = sum(len(part) for part in parts if isinstance(part, str))
    factor = 5 if isinstance(text, Markup) else 1
    meter.allow(factor * length + len(text) * len(parts))
    return text.join(parts, **kwargs)


def _replace(meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    old, new = args[:2]
    count = args[2] if len(args) > 2 else -1
    meter.allow(replacements(text, old, new, count))
    return text.replace(*args, **kwargs)


def _split(name: str) -> Guard:
    def split(meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        separator = args[0] if args else kwargs.get("sep")
        most = args[1] if len(args) > 1 else kwargs.get("maxsplit", -1)
        if separator is not None and separator != "":
            pieces = text.count(separator) + 1
            meter.allow(ELEMENT * (pieces if most < 0 else min(pieces, most + 1)) + len(text))
            return getattr(text, name)(separator, most)
        most = _PIECES_MAX if most < 0 else min(most, _PIECES_MAX)
        found = getattr(text, name)(separator, most)
        if len(found) > _PIECES_MAX:
            raise LimitError("output", f"it splits a text into more than {_PIECES_MAX} pieces")
        meter.allow(ELEMENT * len(found) + len(text))
        return found

    return split


def _splitlines(meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    meter.allow(ELEMENT * lines(text) + len(text))
    return text.splitlines(*args, **kwargs)


def lines(text: str) -> int:
    """Return how many lines `text` has at most."""
    return 1 + sum(text.count(end) for end in _LINE_ENDS)


def _pad(name: str) -> Guard:
    def pad(meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        meter.allow(max(len(text), int(args[0])))
        return getattr(text, name)(*args, **kwargs)

    return pad


def _expandtabs(meter: Meter, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    size = args[0] if args else kwargs.get("tabsize", 8)
    meter.allow(len(text) + text.count("\t") * max(0, size))
    return kept(meter, text.expandtabs(size))


_GUARDS: Final[Mapping[str, Guard]] = MappingProxyType(
    {
        "join": _join,
        "replace": _replace,
        "split": _split("split"),
        "rsplit": _split("rsplit"),
        "splitlines": _splitlines,
        "center": _pad("center"),
        "ljust": _pad("ljust"),
        "rjust": _pad("rjust"),
        "zfill": _pad("zfill"),
        "expandtabs": _expandtabs,
    }
)
