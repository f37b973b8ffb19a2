"""Safe values: weighs containers as trees before a template prints, compares or hashes them.

A template can build a list that holds another list twice, forty times over: it takes forty steps and
a kilobyte, but printing, comparing or hashing it visits 2^40 elements inside the interpreter, where
nothing can stop it. So a container is weighed as a tree, within the meter, before any of the three.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from jinja2.runtime import Undefined
from markupsafe import Markup

from smg_node.prompts.jinja.render_budget import LimitError, Meter

# Values whose printing, comparing and hashing costs no more than their own length.
SCALARS: Final = frozenset({str, int, float, bool, type(None), Undefined, Markup})
# `dict.items()` compare by their elements, so they count as containers; they cannot be printed.
_VIEWS: Final[tuple[Any, ...]] = (type({}.keys()), type({}.values()), type({}.items()))

# A list element, dict entry or small object, with its share of the interpreter's bookkeeping.
ELEMENT: Final = 96
POINTER: Final = 8
# Nesting beyond this is refused before C code recurses over it; bodies nest 128 deep at most.
_NESTING_MAX: Final = 256
# Texts beyond this are paid for by their size in memory, which may be four times their length.
_SMALL: Final = 4096


class UnprintableError(TypeError):
    """The template prints a value that has no text: a macro, a generator, a namespace."""


def weigh(meter: Meter, value: Any, *, printing: bool = False) -> int:
    """Return the size of `value` seen as a tree, in characters and pointers; pays for the walk.

    Raises `LimitError` as soon as it is heavier than the longest prompt, or deeper than 256 levels, and,
    if it is to be printed, `UnprintableError` for anything in it that has only an address to show.
    """
    total = 0
    level: list[Any] = [value]
    for _ in range(_NESTING_MAX):
        total += POINTER * len(level)
        below: list[Any] = []
        for item in level:
            kind: type = type(item)
            if kind is str:
                total += len(item)
            elif kind is dict:
                total += _weigh_dict(item, below)
            elif kind in SCALARS:
                continue
            elif isinstance(item, (list, tuple)):
                below.extend(item)
            elif isinstance(item, dict):
                total += _weigh_dict(item, below)
            elif printing and kind is not range:
                raise UnprintableError(f"it prints a {kind.__name__}, which has no text")
            elif isinstance(item, _VIEWS):
                below.extend(item)
            if total + POINTER * len(below) > meter.value_max:
                meter.refuse_size()
        if not below:
            meter.spend(total)
            return total
        level = below
    raise LimitError("depth", f"it makes a value of more than {_NESTING_MAX} levels")


def _weigh_dict(value: dict[Any, Any], below: list[Any]) -> int:
    """Return what the texts in `value` weigh; what else is in it goes to `below`."""
    total = 2 * POINTER * len(value)
    for key, inner in value.items():
        if type(key) is str:
            total += len(key)
        else:
            below.append(key)
        if type(inner) is str:
            total += len(inner)
        elif type(inner) not in SCALARS:
            below.append(inner)
    return total


def flat(meter: Meter, value: Any) -> Any:
    """Return `value`, now known to be safe to compare and hash."""
    if type(value) not in SCALARS:
        weigh(meter, value)
    return value


def show(meter: Meter, value: Any) -> str:
    """Return the text of `value` as the reference prints it; pays for it first."""
    kind = type(value)
    if kind is str or kind is Markup:
        return paid(meter, value)
    if kind not in SCALARS:
        weigh(meter, value, printing=True)
    return paid(meter, str(value))


def paid(meter: Meter, text: str) -> str:
    """Return `text`, paid for by its size in memory where that matters."""
    length = len(text)
    if length > meter.value_max:
        meter.refuse_size()
    meter.spend(length if length <= _SMALL else text.__sizeof__())
    return text


def kept(meter: Meter, value: Any) -> Any:
    """Return `value`, the result of an operation, paid for by what it holds."""
    if isinstance(value, str):
        return paid(meter, value)
    if isinstance(value, (list, tuple)):
        meter.spend(POINTER * len(value))
    return value


def items(meter: Meter, values: Iterable[Any]) -> list[Any]:
    """Return `values` as a new list, paying for each element before it is kept."""
    if type(values) is list or type(values) is tuple:
        meter.allow(POINTER * len(values))
        return list(values)
    return list(metered(meter, values))


def metered(meter: Meter, values: Iterable[Any]) -> Iterator[Any]:
    """Yield `values`, paying for each element before it is handed on."""
    spend = meter.spend
    for value in values:
        spend(ELEMENT)
        yield value
